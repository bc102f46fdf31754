import { randomBytes } from 'node:crypto';
import { readEnv, variable, type YamlInput } from '@writ/config';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';

/** Everything that can be set about a tool gateway. Times are milliseconds. */
export interface ToolGatewayConfig {
  /** Where services call; port 0 takes a free one. */
  readonly host: string;
  readonly port: number;
  /** The signing key and what tools keep live below it. */
  readonly dataDir: string;
  /** How long a key signs before the next one does; undefined = for ever. */
  readonly keyRotationMs?: number | undefined;
  readonly store: StoreLocation;
  /** Name of this process among the replicas of the service. */
  readonly replica: string;
  /** Tools, sources and allowlists; modules are found from its folder. */
  readonly tools: YamlInput;
  /** Between two looks whether the tools file changed; 0 for never. */
  readonly toolsPollMs: number;
  /** What the file's `${NAME}` stand for, and what local tools may read. Holds secrets: never logged. */
  readonly variables: Readonly<Record<string, string>>;
  /** How old a receipt gets before it is delivered: most were carried by then. */
  readonly receiptDelayMs: number;
  /** Between two looks for receipts to deliver. */
  readonly receiptPollMs: number;
  /** Longest wait after the supervisor did not take receipts. */
  readonly receiptRetryMaxMs: number;
  /** How long a stop waits for calls in flight before it calls them off. */
  readonly drainMs: number;
  /** How long it then waits for the bus to take what is left; the next start sends the rest. */
  readonly flushMs: number;
}

/** The defaults of everything that has one; tests start from here. */
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
  const { host, port, dataDir, keyRotationMs, toolsFile, toolsPollMs } = readEnv(env, {
    ...listenerVariables('tool-gateway'),
    toolsFile: variable.string('WRIT_TOOLS_FILE', {
      default: 'examples/refund-desk/tools.yaml',
      about: 'the file that declares the tools',
    }),
    toolsPollMs: variable.duration('WRIT_TOOLS_POLL', {
      default: TOOL_GATEWAY_DEFAULTS.toolsPollMs,
      about: 'between two looks whether that file changed; 0s for never',
    }),
  });
  return {
    ...TOOL_GATEWAY_DEFAULTS,
    host,
    port,
    dataDir,
    keyRotationMs,
    store: readStoreLocation(env, 'tool-gateway', dataDir),
    replica: `tool-gateway-${randomBytes(4).toString('hex')}`,
    tools: toolsFile,
    toolsPollMs,
    variables: Object.fromEntries(
      Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  };
}
