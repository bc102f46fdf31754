import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { type Environment, readEnv, variable } from '@writ/config';
import { listenerVariables, readStoreLocation } from '@writ/service';
import type { StoreLocation } from '@writ/store';

/** Everything that can be set about an agent worker. Times are milliseconds. */
export interface AgentWorkerConfig {
  /** Where services call; port 0 takes a free one. */
  readonly host: string;
  readonly port: number;
  /** Keys live below it. */
  readonly dataDir: string;
  /** How long a key signs before the next one does; undefined = for ever. */
  readonly keyRotationMs?: number | undefined;
  readonly store: StoreLocation;
  /** Stable over restarts, and different from that of any other worker on the same store. */
  readonly workerId: string;
  /** Tenants that it serves; none given means all (SYS-6). */
  readonly tenants: readonly string[];
  /** Absolute paths of modules with agents that are written in TypeScript (AG-1). */
  readonly agentModules: readonly string[];
  readonly maxConcurrentAgents: number;
  /** How long an agent stays with a worker that gives no sign of life. */
  readonly leaseTtlMs: number;
  /** Between two looks for agents that can run, when nobody nudges. */
  readonly pollMs: number;
  /** After how long a parked agent looks again. */
  readonly parkMs: number;
  /** Between two renewals of the slots of all agents: much shorter than a grant lives. */
  readonly slotRenewMs: number;
  /** Wait before the first restart of a failed agent; doubles. */
  readonly restartMs: number;
  /** Longest one call to another service may take, a model call apart. */
  readonly callTimeoutMs: number;
  /** Longest one model call may take, all attempts together. */
  readonly modelTimeoutMs: number;
  /** Upper bound of the first wait before a call is repeated; doubles up to `retryMaxMs`. */
  readonly retryInitialMs: number;
  readonly retryMaxMs: number;
  /** How long a stop waits for calls under way. */
  readonly drainMs: number;
}

/** The defaults of everything that has one; tests start from here. */
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
  restartMs: 500,
  callTimeoutMs: 10_000,
  modelTimeoutMs: 600_000,
  retryInitialMs: 100,
  retryMaxMs: 5_000,
  drainMs: 5_000,
} as const satisfies Partial<AgentWorkerConfig>;

/**
 * Reads the settings of a worker process.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readAgentWorkerConfig(env: Environment = process.env): AgentWorkerConfig {
  const values = readEnv(env, {
    ...listenerVariables('agent-worker'),
    workerId: variable.string('WRIT_WORKER_ID', {
      optional: true,
      pattern: /^[a-z0-9_-]{1,64}$/,
      about:
        'the id under which this worker leases agents, a new one at each start on PostgreSQL unless it is set',
    }),
    tenants: variable.list('WRIT_WORKER_TENANTS', {
      default: [...AGENT_WORKER_DEFAULTS.tenants],
      item: /^[a-z0-9_-]{1,64}$/,
      about: 'the tenants that this worker serves, all when it is not set',
    }),
    agentModules: variable.list('WRIT_AGENT_MODULES', {
      default: [...AGENT_WORKER_DEFAULTS.agentModules],
      item: /^\S.*$/,
      about: 'modules with agents that are written in TypeScript',
    }),
    maxConcurrentAgents: variable.integer('WRIT_WORKER_MAX_AGENTS', {
      default: AGENT_WORKER_DEFAULTS.maxConcurrentAgents,
      min: 1,
      about: 'how many agents run at the same time',
    }),
    leaseTtlMs: variable.duration('WRIT_WORKER_LEASE_TTL', {
      default: AGENT_WORKER_DEFAULTS.leaseTtlMs,
      min: 1_000,
      about: 'how long an agent stays with a worker that gives no sign of life',
    }),
  });
  const store = readStoreLocation(env, 'agent-worker', values.dataDir);
  // A worker with a file of its own finds what it had leased; among replicas an id must be nobody else's.
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
