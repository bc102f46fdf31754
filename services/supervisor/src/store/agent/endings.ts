import { type AgentKey, derivedId, outcomeOf, type Phase, sha256Hex } from '@writ/kernel';
import { awaitsReply } from '../../domain/agent/waiting-for.ts';
import { stopped } from '../../domain/clock/active-clock.ts';
import type { ChildOrderPayload, EndRunPayload } from '../../domain/order/order-payloads.ts';
import { withdrawApprovals } from '../approval/approvals.ts';
import { appendAudit } from '../audit/append-audit.ts';
import { runTopic } from '../change/changes.ts';
import { noteChange } from '../change/commit-notes.ts';
import { haltCovering } from '../halt/halts.ts';
import { makeOrdersDue, placeOrder } from '../orders.ts';
import { setRunState } from '../run/runs.ts';
import type { SupervisorTransaction } from '../supervisor-store.ts';
import {
  type AgentRow,
  childrenOf,
  clockColumns,
  clockOf,
  findAgent,
  keyOf,
  loadAgent,
  saveAgent,
} from './agents.ts';

import { updateClocksAndRunState } from './waits.ts';

/** How an agent ended. */
export interface Ending extends AgentKey {
  readonly stopReason: string;
  /** Omitted for an ending without a phase, such as success or a cancellation. */
  readonly phase?: Phase | undefined;
  /** The call at which the agent stopped. */
  readonly callId?: string | undefined;
  /** The approved answer. */
  readonly answer?: string | undefined;
  /**
   * One sentence about the ending: from the worker, from the error of a start that failed, or from the reconciler for a
   * lost agent.
   */
  readonly detail?: string | undefined;
  /** Whether the stop reason is only the worker's claim (SV-7). */
  readonly unverified?: boolean | undefined;
  /** The person who ended the agent, and the reason, for the audit record. */
  readonly order?: { readonly by: string; readonly reason: string } | undefined;
}

/**
 * Records the ending of an agent, unless it has one: the first ending is final (AG-7, RT-4). The ending of the root
 * moves the run to ENDING and places the order that ends it; the ending of another agent withdraws its approvals
 * and ends its children (SUP-8). Returns whether this ending was recorded.
 * @throws NotFoundError AGENT_NOT_FOUND, InvalidRequestError INVALID_STOP_REASON
 */
export async function recordEnding(
  trx: SupervisorTransaction,
  ending: Ending,
  at: Date,
): Promise<boolean> {
  const agent = await loadAgent(trx, ending);
  if (agent.ended_at !== null) return false;
  const stopReason = await effectiveReason(trx, ending);
  const { state } = outcomeOf(stopReason);
  await saveAgent(trx, ending, {
    ...clockColumns(stopped(clockOf(agent), at)),
    state,
    waiting_since: null,
    waiting_for: null,
    ending_stop_reason: stopReason,
    ending_phase: ending.phase ?? null,
    ending_call_id: ending.callId ?? null,
    ending_answer: ending.answer ?? null,
    ending_detail: ending.detail ?? null,
    ending_unverified: ending.unverified ?? false,
    ended_at: at,
  });
  await auditEnding(trx, agent, { ...ending, stopReason }, at);
  if (agent.parent_instance === null) {
    await setRunState(trx, ending, 'ENDING', at);
    const payload: EndRunPayload = ending.order ?? {};
    await placeOrder(trx, { ...endRunOrder(ending), payload }, at);
  } else {
    await withdrawApprovals(trx, ending, at);
    for (const child of await childrenOf(trx, ending)) {
      await endChild(trx, { ...keyOf(child), stopReason: 'cancelled' }, at);
    }
    await settleParent(trx, agent, at);
  }
  // Makes the open orders of the run due now, so that they observe the ending.
  await makeOrdersDue(trx, ending, at);
  noteChange(trx, runTopic(ending));
  return true;
}

/**
 * Updates the waits and the state of the run after the end of a child, because the run may now be waiting or parked.
 * Does nothing while the parent is RUNNING. Otherwise acts only if the parent is halted, or is SUSPENDED and does not
 * wait for the reply of this child, which would resume the parent.
 */
async function settleParent(trx: SupervisorTransaction, agent: AgentRow, at: Date): Promise<void> {
  const { parent_instance: instance } = agent;
  const parent =
    instance === null ? undefined : await findAgent(trx, { ...keyOf(agent), instance });
  if (parent === undefined || parent.state === 'RUNNING') return;
  const isHalted = (await haltCovering(trx, keyOf(parent))) !== undefined;
  const waits = parent.state === 'SUSPENDED' && !awaitsReply(parent.waiting_for, agent.instance);
  if (isHalted || waits) await updateClocksAndRunState(trx, keyOf(agent), at);
}

/**
 * Returns the stop reason to record: `halted` for an agent that is halted when its deadline passes, because the halt
 * ended it (SV-9).
 */
async function effectiveReason(
  trx: SupervisorTransaction,
  { tenant, runId, instance, stopReason }: Ending,
): Promise<string> {
  if (stopReason !== 'deadline') return stopReason;
  const halt = await haltCovering(trx, { tenant, runId, instance });
  return halt === undefined ? stopReason : 'halted';
}

/** Audits an ending: who ordered it, and the digest of the answer (SV-8). */
async function auditEnding(
  trx: SupervisorTransaction,
  agent: AgentRow,
  { stopReason, phase, callId, answer, unverified, order }: Ending,
  at: Date,
): Promise<void> {
  const facts = {
    agent: agent.name,
    stop_reason: stopReason,
    phase,
    answer_sha256: answer === undefined ? undefined : sha256Hex(answer),
    unverified,
    ordered_by: order?.by,
    reason_sha256: order?.reason ? sha256Hex(order.reason) : undefined,
  };
  await appendAudit(trx, { ...keyOf(agent), callId, kind: 'agent_ended', facts }, at);
}

/**
 * Ends an agent below the root: records the ending, unless it has one, and places the order that freezes it, closes
 * its tab and releases its slot (SUP-8). Idempotent.
 */
export async function endChild(
  trx: SupervisorTransaction,
  ending: Ending,
  at: Date,
): Promise<void> {
  await recordEnding(trx, ending, at);
  const { tenant, runId, instance } = ending;
  const payload: ChildOrderPayload = { instance };
  const orderId = derivedId('ord', tenant, runId, instance, 'end_child');
  await placeOrder(trx, { orderId, kind: 'end_child', tenant, runId, payload }, at);
}

function endRunOrder({ tenant, runId }: AgentKey) {
  return {
    orderId: derivedId('ord', tenant, runId, 'end_run'),
    kind: 'end_run',
    tenant,
    runId,
  } as const;
}
