import { randomBytes } from 'node:crypto';
import { type AgentKey, InvalidRequestError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { deleteHandle, findHandle, type HandleRow, insertHandle } from '../../store/handles.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';
import { saveToolCall, type ToolCallRow, toolCallKeyOf } from '../../store/tool-calls.ts';

/** How long a `requestState` is valid, ms: the client must repeat the request within this time. */
const RETRY_MS = 10 * 60_000;
/** Maximum time for which a task can be read, ms. A task is deleted when its run ends, even before this time. */
export const TASK_MS = 24 * 60 * 60_000;

type Parts = Pick<ProxyContext, 'store' | 'clock'>;

/**
 * Creates the `requestState` that a client sends when it repeats a waiting request: a random value that is valid once,
 * for one agent and one call. It contains no data; the data is in its row in the table `handles`.
 */
export async function issueRetry(context: Parts, row: ToolCallRow, retry: number): Promise<string> {
  return await issue(context, row, retry, RETRY_MS);
}

/**
 * Creates a task for a call. From then on, the call is executed after its approval without a further request of the
 * client (AP-4).
 */
export async function issueTask(context: Parts, row: ToolCallRow): Promise<string> {
  return await issue(context, row, 0, TASK_MS);
}

async function issue(
  { store, clock }: Parts,
  row: ToolCallRow,
  retry: number,
  ttlMs: number,
): Promise<string> {
  const handle = randomBytes(16).toString('hex');
  const now = clock.now();
  const { tenant, run_id, instance, call_id } = row;
  const expires_at = new Date(now.getTime() + ttlMs);
  const call = toolCallKeyOf(row);
  const insert = async (trx: ProxyTransaction): Promise<void> => {
    await insertHandle(trx, {
      handle,
      tenant,
      run_id,
      instance,
      call_id,
      retry,
      expires_at,
      created_at: now,
    });
    if (retry === 0) await saveToolCall(trx, call, { task_at: now });
  };
  await store.transaction(insert, { run: call });
  return handle;
}

/**
 * Deletes the `requestState` of a repeated request, so that it is valid only once, and returns its row.
 * @throws InvalidRequestError INVALID_REQUEST_STATE when it was never issued to this agent, was used, or has expired
 */
export async function takeRetry(
  { store, clock }: Parts,
  agent: AgentKey,
  state: string,
): Promise<HandleRow> {
  const take = async (trx: ProxyTransaction): Promise<HandleRow> => {
    const found = await findHandle(trx, agent, state);
    if (found === undefined || found.retry === 0 || found.expires_at <= clock.now()) {
      throw invalidState();
    }
    await deleteHandle(trx, state);
    return found;
  };
  return await store.transaction(take, { run: agent });
}

/** Returns the error for a `requestState` that is unknown, used or expired, or that belongs to another call. */
export function invalidState(): InvalidRequestError {
  return new InvalidRequestError(
    'INVALID_REQUEST_STATE',
    'requestState is invalid, used or expired. Repeat the call without it.',
    { field: 'requestState' },
  );
}
