import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { type Environment, MAX_INTERVAL_MS, readEnv, variable } from '@writ/config';
import { type AgentDefinition, TOOL_CALL_TIMEOUT_MS } from '@writ/kernel';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';

/** Settings of an agent worker. Times are in milliseconds. */
export interface AgentWorkerConfig {
  /** Address that services call; port 0 selects a free one. */
  readonly host: string;
  readonly port: number;
  /** Parent folder of the keys and, without PostgreSQL, of the SQLite file. */
  readonly dataDir: string;
  /** Time for which a key is used for signing before it is rotated; undefined disables rotation. */
  readonly keyRotationMs?: number | undefined;
  /** Tolerated clock skew between this service and other services. */
  readonly clockLeewayMs?: number | undefined;
  readonly store: StoreLocation;
  /** Unique among the workers of a store; a worker that restarts with the same id reclaims its agents at once. */
  readonly workerId: string;
  /** Tenants that this worker serves; empty for all (SYS-6). */
  readonly tenants: readonly string[];
  /** Absolute paths of modules with agents, middleware, strategies and history providers (AG-1, AG-8, AG-9). */
  readonly agentModules: readonly string[];
  /** Agents that are defined in code, in addition to those of the modules (AG-1). */
  readonly agentsInCode?: readonly AgentDefinition[];
  readonly maxConcurrentAgents: number;
  /** Time after which the lease of an unresponsive worker expires. */
  readonly leaseTtlMs: number;
  /** Interval between two scans for runnable agents when no wake-up arrives. */
  readonly pollMs: number;
  /**
   * Delay before a retry of an agent that is halted or frozen, or whose tenant a service does not serve. Also the delay
   * before the next lease of an agent whose outcome report the supervisor refused, and of a root agent that the
   * supervisor has already ended with `success` for another process. An agent that waits for a worker with matching
   * code is retried after a multiple of this delay; a preempted agent has no retry time.
   */
  readonly parkMs: number;
  /** Mean interval between two renewals of the slots of leased agents; much shorter than the lifetime of a grant. */
  readonly slotRenewMs: number;
  /** Interval at which the worker repeats its report of suspended agents to spawn-budget, one page at a time. */
  readonly waitReportMs: number;
  /** Delay before the first restart of a failed agent; doubles with each restart. */
  readonly restartMs: number;
  /**
   * Timeout of one call that an agent with a lease makes to another service, other than a model call or a tool call.
   * Also the timeout of one load or save by a history provider.
   */
  readonly callTimeoutMs: number;
  /** Timeout of one tool call. */
  readonly toolTimeoutMs: number;
  /** Timeout of one model call, including all its attempts. */
  readonly modelTimeoutMs: number;
  /** Upper bound of the delay before the first retry; the bound doubles with each retry, up to `retryMaxMs`. */
  readonly retryInitialMs: number;
  readonly retryMaxMs: number;
  /** How long a shutdown waits for in-flight calls. */
  readonly drainMs: number;
}

/** Default settings, also the base of test settings. */
export const AGENT_WORKER_DEFAULTS = {
  host: '127.0.0.1',
  workerId: 'worker-1',
  tenants: [],
  agentModules: [],
  maxConcurrentAgents: 64,
  leaseTtlMs: 15_000,
  pollMs: 1_000,
  parkMs: 2_000,
  slotRenewMs: 2_000,
  waitReportMs: 15_000,
  restartMs: 500,
  callTimeoutMs: 10_000,
  toolTimeoutMs: TOOL_CALL_TIMEOUT_MS,
  modelTimeoutMs: 600_000,
  retryInitialMs: 100,
  retryMaxMs: 5_000,
  drainMs: 5_000,
} as const satisfies Partial<AgentWorkerConfig>;

/**
 * Reads the settings of a worker process from the environment.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readAgentWorkerConfig(env: Environment = process.env): AgentWorkerConfig {
  const values = readEnv(env, {
    ...listenerVariables('agent-worker'),
    workerId: variable.string('WRIT_WORKER_ID', {
      optional: true,
      pattern: /^[a-z0-9_-]{1,64}$/,
      about:
        'id under which this worker leases agents; default on PostgreSQL: a new id at each start',
    }),
    tenants: variable.list('WRIT_WORKER_TENANTS', {
      default: [...AGENT_WORKER_DEFAULTS.tenants],
      item: /^[a-z0-9_-]{1,64}$/,
      about: 'tenants that this worker serves; default: all',
    }),
    agentModules: variable.list('WRIT_AGENT_MODULES', {
      default: [...AGENT_WORKER_DEFAULTS.agentModules],
      item: /^\S.*$/,
      about: 'modules with TypeScript agents, middleware, context strategies and history providers',
    }),
    maxConcurrentAgents: variable.integer('WRIT_WORKER_MAX_AGENTS', {
      default: AGENT_WORKER_DEFAULTS.maxConcurrentAgents,
      min: 1,
      about: 'maximum number of agents that run concurrently',
    }),
    leaseTtlMs: variable.duration('WRIT_WORKER_LEASE_TTL', {
      default: AGENT_WORKER_DEFAULTS.leaseTtlMs,
      min: 1_000,
      max: MAX_INTERVAL_MS,
      about: 'time after which the lease of an unresponsive worker expires',
    }),
  });
  const store = readStoreLocation(env, 'agent-worker', values.dataDir);
  // A worker with a SQLite file reclaims its leases after a restart; replicas need unique ids.
  const ownId =
    store.dialect === 'sqlite'
      ? AGENT_WORKER_DEFAULTS.workerId
      : `worker-${randomBytes(4).toString('hex')}`;
  return {
    ...AGENT_WORKER_DEFAULTS,
    ...values,
    workerId: values.workerId ?? ownId,
    agentModules: values.agentModules.map((path) => resolve(path)),
    store,
  };
}
