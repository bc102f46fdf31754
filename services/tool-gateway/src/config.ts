import { randomBytes } from 'node:crypto';
import { MAX_INTERVAL_MS, readEnv, variable, type YamlInput } from '@writ/config';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';

/** Settings of a tool gateway. Times are milliseconds. */
export interface ToolGatewayConfig {
  /** Address of the listener; port 0 selects a free port. */
  readonly host: string;
  readonly port: number;
  /** Folder of the signing keys and of the files of local tools. */
  readonly dataDir: string;
  /** Signing key rotation interval; undefined disables rotation. */
  readonly keyRotationMs?: number | undefined;
  /** Tolerated difference to the clocks of other services. */
  readonly clockLeewayMs?: number | undefined;
  readonly store: StoreLocation;
  /** Name of this process in its service tokens. The owner of a call is another id, which the store creates. */
  readonly replica: string;
  /** tools.yaml; module paths are relative to its folder. */
  readonly tools: YamlInput;
  /** How often the tools file is checked for changes; 0 disables reloading. */
  readonly toolsPollMs: number;
  /** Values of `${NAME}` in the file, readable by local tools. Contains secrets; never log it. */
  readonly variables: Readonly<Record<string, string>>;
  /** Age at which the gateway delivers a receipt; before that, the worker usually delivers it. */
  readonly receiptDelayMs: number;
  /** How often pending receipts are delivered. */
  readonly receiptPollMs: number;
  /** Longest back-off after a failed delivery. */
  readonly receiptRetryMaxMs: number;
  /** How long a shutdown waits for in-flight calls before it cancels them. */
  readonly drainMs: number;
  /**
   * Time that a shutdown waits for the cancelled calls to end, and for the outbox to drain; events that remain in the
   * outbox are published after the next start.
   */
  readonly flushMs: number;
}

/** Default settings. */
export const TOOL_GATEWAY_DEFAULTS = {
  host: '127.0.0.1',
  replica: 'tool-gateway-0',
  toolsPollMs: 1_000,
  variables: {},
  receiptDelayMs: 2_000,
  receiptPollMs: 1_000,
  receiptRetryMaxMs: 30_000,
  drainMs: 5_000,
  flushMs: 2_000,
} as const;

/**
 * Reads the settings of a tool gateway process.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readToolGatewayConfig(env: NodeJS.ProcessEnv = process.env): ToolGatewayConfig {
  const { host, port, dataDir, keyRotationMs, clockLeewayMs, toolsFile, toolsPollMs } = readEnv(
    env,
    {
      ...listenerVariables('tool-gateway'),
      toolsFile: variable.string('WRIT_TOOLS_FILE', {
        default: 'examples/refund-desk/tools.yaml',
        about: 'the file that declares the tools',
      }),
      toolsPollMs: variable.duration('WRIT_TOOLS_POLL', {
        default: TOOL_GATEWAY_DEFAULTS.toolsPollMs,
        max: MAX_INTERVAL_MS,
        about: 'how often the tools file is checked for changes; 0s disables reloading',
      }),
    },
  );
  return {
    ...TOOL_GATEWAY_DEFAULTS,
    host,
    port,
    dataDir,
    keyRotationMs,
    clockLeewayMs,
    store: readStoreLocation(env, 'tool-gateway', dataDir),
    replica: `tool-gateway-${randomBytes(4).toString('hex')}`,
    tools: toolsFile,
    toolsPollMs,
    variables: Object.fromEntries(
      Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  };
}
