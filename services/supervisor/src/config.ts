import { randomBytes } from 'node:crypto';
import { readEnv, variable, type YamlInput } from '@writ/config';
import type { OidcSettings, TenantRate } from '@writ/identity';
import type { Person, TlsFileNames } from '@writ/rpc';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';
import type { ConsoleSettings } from './console.ts';
import type { AgentManifest } from './domain/manifest/agent-manifest.ts';
import { EDGE_DEFAULTS, readEdgeConfig } from './edge-config.ts';

/** The configuration of a supervisor. Durations are milliseconds. */
export interface SupervisorConfig {
  /** The listener for services; port 0 selects a free port. */
  readonly host: string;
  readonly port: number;
  /** The listener for clients. */
  readonly edge: { readonly host: string; readonly port: number };
  /** Directory of keys and generated files. */
  readonly dataDir: string;
  /** API keys of this process that are not stored, each with its person; used by the embedded platform. */
  readonly unsavedApiKeys?: ReadonlyMap<string, Person> | undefined;
  /** Name of this process among the replicas. */
  readonly replica: string;
  readonly store: StoreLocation;
  /** The file that defines agents; undefined = only the agents in code. See agents-file.ts. */
  readonly agents: YamlInput | undefined;
  /** Agents created by createAgent, in addition to the agents of the file. */
  readonly agentsInCode?: readonly AgentManifest[] | undefined;
  /** The policy. */
  readonly policy: YamlInput;
  /** The file of the endpoints that are notified of approvals, halts and budgets; undefined = none. */
  readonly notifications: YamlInput | undefined;
  /**
   * All environment variables, because the notifications file refers to variables by name. They can be secrets and are
   * never logged.
   */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Poll interval for notifications that are due, and the first delay after a failure, which doubles up to an hour. */
  readonly notifyPollMs: number;
  readonly notifyRetryMs: number;
  /** Lifetime of an agent's tokens. */
  readonly agentTokenTtlMs: number;
  /** Lifetime of a writ. */
  readonly writTtlMs: number;
  /** Time until a pending approval expires; undefined = never. */
  readonly approvalTtlMs: number | undefined;
  /** Whether the person who started a run must not approve its actions, regardless of the policy. */
  readonly fourEyes: boolean;
  /**
   * The person of the development key, who is exempt from the four-eyes rule unless `fourEyes` or the policy sets it.
   */
  readonly developer?: string | undefined;
  /** Time until a signing key is rotated; undefined = never. */
  readonly keyRotationMs: number | undefined;
  /** Tolerated clock difference between this service and others. */
  readonly clockLeewayMs?: number | undefined;
  /**
   * Time after its start during which a replica signs checkpoints only if the clocks of two peers confirm its clock;
   * default 30,000.
   */
  readonly clockAloneMs?: number | undefined;
  /** Interval of the sweeps: deadlines, expired approvals, purges, held events, changed files. */
  readonly sweepMs: number;
  /** Interval of the comparison of open runs with the worker, the meter and spawn-budget. */
  readonly reconcileMs: number;
  /** First back-off of a failed order; doubles up to `orderRetryMaxMs`. */
  readonly orderRetryMs: number;
  readonly orderRetryMaxMs: number;
  /** How long SpawnChild, EndChild and OpenExternalRun wait for their orders before they return UNAVAILABLE. */
  readonly childWaitMs: number;
  /** How long Halt and Resume wait for the meter and the gateway. */
  readonly haltWaitMs: number;
  /** Base URL of the model endpoint of agent-proxy, which IssueRunToken returns. */
  readonly agentProxyUrl?: (() => string) | undefined;
  /** Maximum number of runs in progress of one tenant; undefined = unlimited. */
  readonly maxRunsPerTenant: number | undefined;
  /** Maximum number of runs that are waiting to start: of all tenants, and of one tenant (BD-5). */
  readonly maxQueuedRuns: number;
  readonly maxQueuedRunsPerTenant: number;
  /** Limit of public calls of one tenant: rate per second, and burst. */
  readonly tenantRate: TenantRate;
  /** The OIDC issuer whose tokens are accepted in addition to API keys; undefined = only API keys. */
  readonly oidc: OidcSettings | undefined;
  /** Origins of web pages that may call the public listener. */
  readonly allowedOrigins: readonly string[];
  /** The console at the public listener. */
  readonly console: ConsoleSettings;
  /** The TLS files of the public listener; undefined = cleartext. */
  readonly edgeTls: TlsFileNames | undefined;
  /** How long a shutdown waits for calls and steps in flight. */
  readonly drainMs: number;
  /** Poll interval for events that another process wrote. */
  readonly watchPollMs: number;
  /**
   * Time without a message on a watch stream after which the server sends a heartbeat; clients reconnect after three
   * times the default of this setting.
   */
  readonly watchHeartbeatMs: number;
  /** How long the content of a run that is not retained can be read after its end. */
  readonly purgeAfterMs: number;
  /** How long the audit chainer waits after a commit for further commits, to link them together. */
  readonly auditBatchWindowMs: number;
  /** Poll interval for audit records that another process wrote. */
  readonly auditPollMs: number;
  /** Lifetime of the chainer's lease without renewal. */
  readonly auditLeaseMs: number;
  /** Number of records without a checkpoint at which the chain is signed. */
  readonly auditCheckpointRecords: number;
  /** Age of the last checkpoint at which a chain with unsigned records is signed. */
  readonly auditCheckpointMs: number;
  /** File to which signed checkpoints are appended. */
  readonly auditCheckpointFile?: string | undefined;
  /** How long a reader of the audit record waits for the chainer. */
  readonly auditWaitMs: number;
}

/** The defaults; tests start from them. */
export const SUPERVISOR_DEFAULTS = {
  host: '127.0.0.1',
  replica: 'supervisor-0',
  notifications: undefined,
  variables: {},
  notifyPollMs: 1_000,
  notifyRetryMs: 5_000,
  agentTokenTtlMs: 15 * 60_000,
  writTtlMs: 60_000,
  approvalTtlMs: 24 * 60 * 60_000,
  fourEyes: false,
  keyRotationMs: undefined,
  sweepMs: 1_000,
  reconcileMs: 15_000,
  orderRetryMs: 200,
  orderRetryMaxMs: 30_000,
  childWaitMs: 5_000,
  haltWaitMs: 8_000,
  ...EDGE_DEFAULTS,
  oidc: undefined,
  edgeTls: undefined,
  drainMs: 5_000,
  watchPollMs: 1_000,
  watchHeartbeatMs: 5_000,
  purgeAfterMs: 30_000,
  auditBatchWindowMs: 50,
  auditPollMs: 1_000,
  auditLeaseMs: 5_000,
  auditCheckpointRecords: 1_000,
  auditCheckpointMs: 60_000,
  auditWaitMs: 10_000,
} as const;

/**
 * Reads the configuration of a supervisor process.
 * @throws ConfigError naming every missing or malformed variable that this function reads itself; the variables of the
 *   public listener and of the store are read afterwards and reported separately
 */
export function readSupervisorConfig(env: NodeJS.ProcessEnv = process.env): SupervisorConfig {
  const values = readEnv(env, {
    ...listenerVariables('supervisor'),
    edgeHost: variable.string('WRIT_EDGE_HOST', {
      default: SUPERVISOR_DEFAULTS.host,
      about: 'the address of the listener for clients',
    }),
    edgePort: variable.port('WRIT_EDGE_PORT', {
      default: 8080,
      about: 'the port of the listener for clients',
    }),
    agentsFile: variable.string('WRIT_AGENTS_FILE', {
      default: 'examples/refund-desk/agents.yaml',
      about: 'the file that defines the agents',
    }),
    policyFile: variable.string('WRIT_POLICY_FILE', {
      default: 'examples/refund-desk/policy.yaml',
      about: 'the policy file',
    }),
    notificationsFile: variable.string('WRIT_NOTIFICATIONS_FILE', {
      optional: true,
      about:
        'the file of the endpoints that are notified of approvals, halts and budget thresholds',
    }),
    approvalTtlMs: variable.duration('WRIT_APPROVAL_TTL', {
      default: SUPERVISOR_DEFAULTS.approvalTtlMs,
      min: 1,
      about:
        'time after which an unanswered approval expires: an action is then rejected, and an unknown outcome of a call stays unknown',
    }),
    fourEyes: variable.boolean('WRIT_FOUR_EYES', {
      default: SUPERVISOR_DEFAULTS.fourEyes,
      about:
        'whether the person who started a run is forbidden to approve its actions, regardless of the policy',
    }),
    reconcileMs: variable.duration('WRIT_RECONCILE_INTERVAL', {
      default: SUPERVISOR_DEFAULTS.reconcileMs,
      min: 100,
      about:
        'the interval at which open runs are compared with the worker, the meter and spawn-budget',
    }),
    purgeAfterMs: variable.duration('WRIT_PURGE_AFTER', {
      default: SUPERVISOR_DEFAULTS.purgeAfterMs,
      min: 0,
      about:
        'how long the content of a run that is not retained can be read after the run has ended',
    }),
    auditCheckpointRecords: variable.integer('WRIT_AUDIT_CHECKPOINT_RECORDS', {
      default: SUPERVISOR_DEFAULTS.auditCheckpointRecords,
      min: 1,
      about: 'number of unsigned audit records at which a checkpoint is signed',
    }),
    auditCheckpointMs: variable.duration('WRIT_AUDIT_CHECKPOINT_EVERY', {
      default: SUPERVISOR_DEFAULTS.auditCheckpointMs,
      min: 1_000,
      about: 'maximum age of audit records without a signed checkpoint',
    }),
    agentProxyUrl: variable.string('WRIT_AGENT_PROXY_URL', {
      optional: true,
      pattern: /^https?:\/\/\S+$/,
      about:
        'the base URL of the model endpoint for external agents, such as https://models.example/v1',
    }),
    auditCheckpointFile: variable.string('WRIT_AUDIT_CHECKPOINT_FILE', {
      optional: true,
      about: 'the file, outside the database, to which every signed audit checkpoint is appended',
    }),
  });
  const { host, port, edgeHost, edgePort, dataDir, agentsFile, policyFile, approvalTtlMs } = values;
  const { fourEyes, keyRotationMs, clockLeewayMs, agentProxyUrl } = values;
  return {
    ...SUPERVISOR_DEFAULTS,
    ...readEdgeConfig(env),
    host,
    port,
    edge: { host: edgeHost, port: edgePort },
    dataDir,
    replica: `supervisor-${randomBytes(4).toString('hex')}`,
    store: readStoreLocation(env, 'supervisor', dataDir),
    agents: agentsFile,
    policy: policyFile,
    notifications: values.notificationsFile,
    variables: { ...env },
    approvalTtlMs,
    fourEyes,
    keyRotationMs,
    clockLeewayMs,
    reconcileMs: values.reconcileMs,
    purgeAfterMs: values.purgeAfterMs,
    auditCheckpointRecords: values.auditCheckpointRecords,
    auditCheckpointMs: values.auditCheckpointMs,
    auditCheckpointFile: values.auditCheckpointFile,
    agentProxyUrl: agentProxyUrl === undefined ? undefined : () => agentProxyUrl,
  };
}
