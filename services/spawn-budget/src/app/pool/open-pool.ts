import {
  AlreadyExistsError,
  DEFAULT_SPAWN_BUDGET,
  PreconditionError,
  type RunKey,
} from '@writ/kernel';
import { COMMIT_DELAY_MS } from '@writ/store';
import type { OpenEvent } from '../../domain/pool/events.ts';
import { openPool as newPool } from '../../domain/pool/open.ts';
import type { Pool } from '../../domain/pool/pool.ts';
import { requestIdReused } from '../../store/requests.ts';
import type { StoredPool } from '../../store/stored-pool.ts';
import type { MemberSnapshot, PoolRepository, PoolTransaction } from './pool-repository.ts';

/** The request that opens or closes a pool. */
export interface PoolRequest extends RunKey {
  readonly requestId: string;
  /** Digest of the whole request; empty for a close. */
  readonly digest: string;
  readonly traceparent: string;
  /** Session of the run; empty for a close. */
  readonly sessionId: string;
}

/**
 * Opens a run's pool with the root in its first slot (SB-1); a repeated request returns the root's current state.
 * @throws InvalidRequestError REQUEST_ID_REUSED; AlreadyExistsError POOL_EXISTS; PreconditionError
 *   POOL_CLOSED if the run ended before its pool was opened
 */
export async function openPool(
  repository: PoolRepository,
  request: PoolRequest,
  event: OpenEvent,
): Promise<MemberSnapshot> {
  const { instance } = event.root;
  return await repository.transaction([request], async (pools) => {
    const known = pools.find(request);
    if (known !== undefined) {
      assertSameRequest(known, request);
      await pools.loadReleased(request, [instance]);
    } else {
      const opened = { openedAt: pools.at, closedAt: null };
      await pools.open({ ...storedRequest(request), ...opened, pool: newPool(event, pools.time) });
    }
    return pools.member(request, instance);
  });
}

/**
 * Releases every slot of a run; closing a closed pool changes nothing. For a run without a pool, creates a closed pool,
 * so that a later open is rejected.
 * @param mayWait whether no caller waits for the result, so that the commit may be delayed and shared with other
 *   transactions (CO-1)
 */
export async function closePool(
  repository: PoolRepository,
  request: PoolRequest,
  mayWait: boolean,
): Promise<Pool> {
  const work = async (pools: PoolTransaction) => {
    if (pools.find(request) !== undefined) pools.apply(request, { type: 'close' });
    else {
      const opened = { openedAt: pools.at, closedAt: pools.at };
      await pools.open({ ...storedRequest(request), ...opened, pool: CLOSED_POOL });
    }
    return pools.get(request).pool;
  };
  return await repository.transaction([request], work, {
    commitDelayMs: mayWait ? COMMIT_DELAY_MS : 0,
  });
}

const CLOSED_POOL: Pool = {
  budget: DEFAULT_SPAWN_BUDGET,
  root: '',
  closed: true,
  members: new Map(),
  sequence: 0,
  totalSpawns: 0,
  totalPauses: 0,
  totalRefusals: 0,
};

function storedRequest({ digest: requestDigest, ...stored }: PoolRequest) {
  return { ...stored, requestDigest };
}

function assertSameRequest(known: StoredPool, { requestId, digest }: PoolRequest): void {
  if (known.pool.root === '')
    throw new PreconditionError(
      'POOL_CLOSED',
      `Run ${known.runId} ended before its pool was opened.`,
      { run_id: known.runId },
    );
  if (known.requestDigest === digest) return;
  if (known.requestId === requestId) throw requestIdReused(requestId);
  throw new AlreadyExistsError('POOL_EXISTS', `Run ${known.runId} already has a pool.`, {
    run_id: known.runId,
  });
}
