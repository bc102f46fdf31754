import { randomBytes } from 'node:crypto';
import { readEnv, variable, type YamlInput } from '@writ/config';
import type { OidcSettings, TenantRate } from '@writ/identity';
import type { TlsFileNames } from '@writ/rpc';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';
import { DOOR_DEFAULTS, readDoorSettings } from './edge-config.ts';

/** Everything that can be set about a supervisor. Times are milliseconds. */
export interface SupervisorConfig {
  /** Where services call; port 0 takes a free one. */
  readonly host: string;
  readonly port: number;
  /** Where people and clients call. */
  readonly edge: { readonly host: string; readonly port: number };
  /** Keys and generated files live below it. */
  readonly dataDir: string;
  /** Name of this process among the replicas of the service. */
  readonly replica: string;
  readonly store: StoreLocation;
  /** The agents that can be started; see agents-file.ts. */
  readonly agents: YamlInput;
  /** The rules that every action is held against. */
  readonly policy: YamlInput;
  /** How long an agent's tokens work. */
  readonly agentTokenTtlMs: number;
  /** How long a writ works; a fresh one can be had. */
  readonly writTtlMs: number;
  /** How long an approval waits; undefined = for ever. */
  readonly approvalTtlMs: number | undefined;
  /** Whoever started a run may approve none of its actions, whatever the policy says of it. */
  readonly fourEyes: boolean;
  /** How long a key signs before the next one does; undefined = for ever. */
  readonly keyRotationMs: number | undefined;
  /** Between two looks for what is over its time, and for changed policy and agents. */
  readonly sweepMs: number;
  /** First wait before a failed order is tried again; doubles up to `orderRetryMaxMs`. */
  readonly orderRetryMs: number;
  readonly orderRetryMaxMs: number;
  /** How long SpawnChild and EndChild wait for their orders; what takes longer is asked for again. */
  readonly childWaitMs: number;
  /** How long Halt and Resume wait for the meter and the gateway before they say who is missing. */
  readonly haltWaitMs: number;
  /** How many runs of one tenant may be under way; undefined = unlimited. */
  readonly maxRunsPerTenant: number | undefined;
  /** How many public calls of one tenant are taken in a second, on average and at once. */
  readonly tenantRate: TenantRate;
  /** Whose tokens are taken at the public door besides API keys; undefined = nobody's. */
  readonly oidc: OidcSettings | undefined;
  /** What the public door shows to clients; undefined = it speaks cleartext. */
  readonly edgeTls: TlsFileNames | undefined;
  /** How long a stop waits for calls and steps under way. */
  readonly drainMs: number;
  /** Between two looks for events that another process wrote. */
  readonly watchPollMs: number;
  /** How long the contents of a run that is not kept can be read after its end. */
  readonly purgeAfterMs: number;
  /** How long the audit chainer waits after a commit for others, to link them together. */
  readonly auditLingerMs: number;
  /** Between two looks for audit records that another process wrote. */
  readonly auditPollMs: number;
  /** How long the chainer's lease is good when its holder gives no sign of life. */
  readonly auditLeaseMs: number;
  /** A chain is signed when so many records are not covered by a checkpoint. */
  readonly auditCheckpointRecords: number;
  /** And when some are not, and the last checkpoint is this old. */
  readonly auditCheckpointMs: number;
  /** How long whoever reads the audit record waits for the chainer. */
  readonly auditWaitMs: number;
}

/** The defaults of everything that has one; tests start from here. */
export const SUPERVISOR_DEFAULTS = {
  host: '127.0.0.1',
  replica: 'supervisor-0',
  agentTokenTtlMs: 15 * 60_000,
  writTtlMs: 60_000,
  approvalTtlMs: 24 * 60 * 60_000,
  fourEyes: false,
  keyRotationMs: undefined,
  sweepMs: 1_000,
  orderRetryMs: 200,
  orderRetryMaxMs: 30_000,
  childWaitMs: 5_000,
  haltWaitMs: 8_000,
  ...DOOR_DEFAULTS,
  oidc: undefined,
  edgeTls: undefined,
  drainMs: 5_000,
  watchPollMs: 1_000,
  purgeAfterMs: 30_000,
  auditLingerMs: 50,
  auditPollMs: 1_000,
  auditLeaseMs: 5_000,
  auditCheckpointRecords: 1_000,
  auditCheckpointMs: 60_000,
  auditWaitMs: 10_000,
} as const;

/**
 * Reads the settings of a supervisor process.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readSupervisorConfig(env: NodeJS.ProcessEnv = process.env): SupervisorConfig {
  const values = readEnv(env, {
    ...listenerVariables('supervisor'),
    edgeHost: variable.string('WRIT_EDGE_HOST', {
      default: SUPERVISOR_DEFAULTS.host,
      about: 'the address on which clients call',
    }),
    edgePort: variable.port('WRIT_EDGE_PORT', {
      default: 8080,
      about: 'the port on which clients call',
    }),
    agentsFile: variable.string('WRIT_AGENTS_FILE', {
      default: 'examples/refund-desk/agents.yaml',
      about: 'the file that defines the agents',
    }),
    policyFile: variable.string('WRIT_POLICY_FILE', {
      default: 'examples/refund-desk/policy.yaml',
      about: 'the file with the rules that actions are held against',
    }),
    approvalTtlMs: variable.duration('WRIT_APPROVAL_TTL', {
      default: SUPERVISOR_DEFAULTS.approvalTtlMs,
      min: 1,
      about: 'how long an approval waits before nobody having decided is a no',
    }),
    fourEyes: variable.boolean('WRIT_FOUR_EYES', {
      default: SUPERVISOR_DEFAULTS.fourEyes,
      about: 'whether whoever started a run may approve none of its actions',
    }),
    purgeAfterMs: variable.duration('WRIT_PURGE_AFTER', {
      default: SUPERVISOR_DEFAULTS.purgeAfterMs,
      min: 0,
      about: 'how long after its end the contents of a run that is not kept can be read',
    }),
    auditCheckpointRecords: variable.integer('WRIT_AUDIT_CHECKPOINT_RECORDS', {
      default: SUPERVISOR_DEFAULTS.auditCheckpointRecords,
      min: 1,
      about: 'how many audit records are linked before a checkpoint over them is signed',
    }),
    auditCheckpointMs: variable.duration('WRIT_AUDIT_CHECKPOINT_EVERY', {
      default: SUPERVISOR_DEFAULTS.auditCheckpointMs,
      min: 1_000,
      about: 'how long audit records wait at most for a signed checkpoint',
    }),
  });
  const { host, port, edgeHost, edgePort, dataDir, agentsFile, policyFile, approvalTtlMs } = values;
  const { fourEyes, keyRotationMs } = values;
  return {
    ...SUPERVISOR_DEFAULTS,
    ...readDoorSettings(env),
    host,
    port,
    edge: { host: edgeHost, port: edgePort },
    dataDir,
    replica: `supervisor-${randomBytes(4).toString('hex')}`,
    store: readStoreLocation(env, 'supervisor', dataDir),
    agents: agentsFile,
    policy: policyFile,
    approvalTtlMs,
    fourEyes,
    keyRotationMs,
    purgeAfterMs: values.purgeAfterMs,
    auditCheckpointRecords: values.auditCheckpointRecords,
    auditCheckpointMs: values.auditCheckpointMs,
  };
}
