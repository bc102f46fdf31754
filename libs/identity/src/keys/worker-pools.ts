import { PermissionDeniedError } from '@writ/kernel';

/** A pool of workers with its own keys. Only these workers serve its tenants (SYS-6). */
export interface WorkerPool {
  /** `host:port`, or a list for its replicas. */
  readonly address: string;
  readonly tenants: readonly string[];
}

/** Returns the pool that serves a tenant; undefined when workers outside of any pool serve it. */
export function poolOf(pools: readonly WorkerPool[], tenant: string): WorkerPool | undefined {
  return pools.find(({ tenants }) => tenants.includes(tenant));
}

/**
 * Returns the pool that must have the key of a worker with these tenants; undefined when the tenants belong to no pool.
 * A worker that names no tenants belongs to no pool, so it may not act for the tenants of any pool.
 * @throws PermissionDeniedError TENANT_NOT_SERVED when the tenants do not all belong to the same pool
 */
export function poolOfWorker(
  pools: readonly WorkerPool[],
  tenants: readonly string[],
): WorkerPool | undefined {
  const [first, ...others] = new Set(tenants.map((tenant) => poolOf(pools, tenant)));
  if (others.length === 0) return first;
  throw new PermissionDeniedError(
    'TENANT_NOT_SERVED',
    `No pool of workers serves the tenants ${tenants.join(', ')} together; correct WRIT_WORKER_TENANTS or WRIT_AGENT_WORKER_POOLS.`,
    { service: 'agent-worker', setting: 'WRIT_AGENT_WORKER_POOLS' },
  );
}
