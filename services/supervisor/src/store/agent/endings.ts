import { derivedId, outcomeOf, type Phase } from '@writ/kernel';
import { stopped } from '../../domain/clock/active-clock.ts';
import { noteChange, runTopic } from '../change/changes.ts';
import { hurryOrders, placeOrder } from '../orders.ts';
import { setRunState } from '../run/runs.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';
import { type AgentKey, clockColumns, clockOf, loadAgent, saveAgent } from './agents.ts';

/** How an agent ended. */
export interface Ending extends AgentKey {
  readonly stopReason: string;
  /** Left out when it did not stop anywhere: success, cancel. */
  readonly phase?: Phase | undefined;
  /** The call that it stopped at. */
  readonly callId?: string | undefined;
  /** The approved answer. */
  readonly answer?: string | undefined;
  /** One sentence of the worker's own. */
  readonly detail?: string | undefined;
  /** The stop reason is only the worker's word (SV-7). */
  readonly unverified?: boolean | undefined;
  /** The person who ended it, and why, for the audit record. */
  readonly order?: { readonly by: string; readonly reason: string } | undefined;
}

/** Payload of the order that ends a run. */
export interface EndRunPayload {
  readonly by?: string;
  readonly reason?: string;
}

/**
 * Records how an agent ended, unless something ended it before: the first ending wins every race
 * (AG-7, RT-4). The root's ending also moves the run to ENDING and places the order that ends it.
 * Returns whether this ending is the one that stands.
 * @throws NotFoundError AGENT_NOT_FOUND, InvalidRequestError BAD_STOP_REASON
 */
export async function recordEnding(
  trx: SupervisorTransaction,
  ending: Ending,
  at: Date,
): Promise<boolean> {
  const { state } = outcomeOf(ending.stopReason);
  const agent = await loadAgent(trx, ending);
  if (agent.ended_at !== null) return false;
  await saveAgent(trx, ending, {
    ...clockColumns(stopped(clockOf(agent), at)),
    state,
    waiting_since: null,
    ending_stop_reason: ending.stopReason,
    ending_phase: ending.phase ?? null,
    ending_call_id: ending.callId ?? null,
    ending_answer: ending.answer ?? null,
    ending_detail: ending.detail ?? null,
    ending_unverified: ending.unverified ?? false,
    ended_at: at,
  });
  if (agent.parent_instance === null) {
    await setRunState(trx, ending, 'ENDING');
    const payload: EndRunPayload = ending.order ?? {};
    await placeOrder(trx, { ...endRunOrder(ending), payload }, at);
    // What is under way for the run must notice before its end is driven.
    await hurryOrders(trx, ending, at);
  }
  noteChange(trx, runTopic(ending));
  return true;
}

function endRunOrder({ tenant, runId }: AgentKey) {
  return {
    orderId: derivedId('ord', tenant, runId, 'end_run'),
    kind: 'end_run',
    tenant,
    runId,
  } as const;
}
