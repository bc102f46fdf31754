import { PermissionDeniedError } from '@writ/kernel';

/** Workers that alone serve these tenants, with keys of their own (SYS-6). */
export interface WorkerPool {
  /** `host:port`, or a list for its replicas. */
  readonly address: string;
  readonly tenants: readonly string[];
}

/** The pool that serves a tenant; undefined when the workers without a pool do. */
export function poolOf(pools: readonly WorkerPool[], tenant: string): WorkerPool | undefined {
  return pools.find(({ tenants }) => tenants.includes(tenant));
}

/**
 * The pool whose keys prove that a worker serves these tenants; undefined for the workers without a pool. A worker that
 * names no tenants has no pool, so that its keys prove nothing for the tenants of any pool.
 * @throws PermissionDeniedError TENANT_NOT_SERVED when no pool serves them together
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
