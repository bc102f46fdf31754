import type { AgentKey } from '@writ/kernel';
import { isTerminal } from '@writ/kernel';
import { reduceAgent } from '../../domain/agent/state.ts';
import {
  type AgentChanges,
  type AgentRow,
  findAgent,
  saveAgent,
  statusColumns,
  statusOf,
} from '../../store/agents.ts';
import { agentColumns, keyOf } from '../../store/keys.ts';
import { findSignal, insertSignal } from '../../store/signals.ts';
import { pauseTimersWhileParked } from '../../store/timers.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';

/** A signal that the worker itself sends: a reply, a timer or a topic item. */
export interface InternalSignal {
  /** Deduplicates repeated sends. */
  readonly id: string;
  readonly name: string;
  /** JSON object. */
  readonly payload: string;
}

/**
 * Sends a signal to an agent and wakes the agent if it waits for the signal, in the given transaction (RT-3). Returns
 * false when the agent does not exist or has ended, or when the signal was sent before.
 */
export async function sendSignal(
  trx: WorkerTransaction,
  key: AgentKey,
  signal: InternalSignal,
  at: Date,
): Promise<boolean> {
  const agent = await findAgent(trx, key);
  if (agent === undefined || isTerminal(statusOf(agent).state)) return false;
  if (!(await storeSignal(trx, key, signal, at))) return false;
  await wakeAgent(trx, agent, { name: signal.name }, at);
  return true;
}

/** Stores a signal that the worker itself sends. Returns false when the signal was sent before. */
export async function storeSignal(
  trx: WorkerTransaction,
  key: AgentKey,
  { id, name, payload }: InternalSignal,
  at: Date,
): Promise<boolean> {
  if ((await findSignal(trx, key, id)) !== undefined) return false;
  await insertSignal(trx, {
    ...agentColumns(key),
    request_id: id,
    request_digest: '',
    name,
    payload,
    decision: null,
    sender: null,
    received_at: at,
    consumed_at: null,
  });
  return true;
}

/** Makes an agent runnable if it waits for the signal `name`, and saves `changes` in any case. */
export async function wakeAgent(
  trx: WorkerTransaction,
  agent: AgentRow,
  { name, changes = {} }: { readonly name: string; readonly changes?: AgentChanges },
  at: Date,
): Promise<void> {
  const status = statusOf(agent);
  const next = reduceAgent(status, { type: 'signalled', name });
  const key = keyOf(agent);
  await pauseTimersWhileParked(trx, key, { from: status.state, to: next.state }, at);
  await saveAgent(trx, key, {
    ...(next !== status && statusColumns(next, at)),
    // Always set, so that the update is never empty.
    state: next.state,
    ...changes,
  });
}
