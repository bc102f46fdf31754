import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import { type AgentKey, CancellationError, UnavailableError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { WaitTerms } from '../waiting-calls/waiting-requests.ts';
import {
  type ClientToolRequest,
  clientToolCallId,
  numberClientTool,
  useApproval,
} from './number-client-tool.ts';
import {
  approvalUsed,
  awaitClientTool,
  type ProposedCall,
  proposeClientTool,
} from './review-client-tool.ts';

/** Delay after which a client should repeat a request whose calls wait for a person, ms. */
const RETRY_AFTER_MS = 30_000;

/** The calls of an answer with their decisions; `refused` is the first that must not be executed. */
export interface ProposedCalls {
  readonly calls: readonly ProposedCall[];
  readonly refused: ProposedCall | undefined;
}

/**
 * The decision on the calls of an answer: the approved arguments of each call, keyed by the id that the model gave it,
 * or the refused call.
 */
export type DecidedCalls =
  | { readonly approved: ReadonlyMap<string, string> }
  | { readonly refused: ProposedCall };

/**
 * Requests decisions on the calls of one answer, in their order, up to the first refusal (AP-5).
 * @throws what Slots.grant and AgentTokens.of throw; errors of the supervisor
 */
export async function proposeCalls(
  context: ProxyContext,
  agent: AgentKey,
  requests: readonly ClientToolRequest[],
): Promise<ProposedCalls> {
  const apart = new Set(requests.map(({ toolUseId }) => clientToolCallId(agent, toolUseId)));
  const calls: ProposedCall[] = [];
  for (const request of requests) {
    const row = await numberClientTool(context, agent, request, apart);
    const call = { row, request, decision: await proposeClientTool(context, row, request) };
    calls.push(call);
    if (isRefused(call)) return { calls, refused: call };
  }
  return { calls, refused: undefined };
}

/** Whether a person must decide. */
export function mustWait({ calls, refused }: ProposedCalls): boolean {
  return refused === undefined && calls.some(({ decision }) => !decision.settled);
}

/**
 * Waits until all calls are decided or one is refused, and records durably which call uses each approval. The decision
 * of a person applies to one call of the model; a repeated request gets the same answer (AP-4, AP-5).
 * @throws UnavailableError APPROVAL_PENDING after `terms.holdMs`; PreconditionError APPROVAL_USED; the reason of
 *   `terms.signal`; what Slots.grant and AgentTokens.of throw; errors of the supervisor
 */
export async function decideCalls(
  context: ProxyContext,
  agent: AgentKey,
  proposed: ProposedCalls,
  terms: WaitTerms,
): Promise<DecidedCalls> {
  const { calls, refused } = await settle(context, proposed, terms);
  if (refused !== undefined) {
    const { row, request, decision } = refused;
    // With the use recorded, a later equal call is reviewed separately. The refusal applies even if an equal call that
    // waited for the same approval has used it.
    if (decision.approvalId !== '') await useApproval(context, row, request.toolUseId);
    return { refused };
  }
  const waits = calls.find(({ decision }) => !decision.settled);
  if (waits !== undefined) throw pending(waits, terms);
  for (const { row, request, decision } of calls) {
    if (decision.approvalId === '') continue;
    if (await useApproval(context, row, request.toolUseId)) continue;
    // An equal call has used the approval in the meantime. A call that attached to the approval is reviewed separately;
    // the call for which the approval was created cannot be reviewed twice.
    if (row.call_id === clientToolCallId(agent, request.toolUseId)) throw approvalUsed(decision);
    const requests = calls.map((call) => call.request);
    const again = await proposeCalls(context, agent, requests);
    return await decideCalls(context, agent, again, terms);
  }
  return {
    approved: new Map(
      calls.map(({ request, decision }) => [request.toolUseId, argumentsOf(decision)]),
    ),
  };
}

async function settle(
  context: ProxyContext,
  { calls, refused }: ProposedCalls,
  terms: WaitTerms,
): Promise<ProposedCalls> {
  if (refused !== undefined) return { calls, refused };
  const endWaits = new AbortController();
  const signal = AbortSignal.any([terms.signal, endWaits.signal]);
  const counted = { ...terms, signal, onWait: countedWaits(terms.onWait) };
  let first: ProposedCall | undefined;
  const settled = calls.map(async (call) => {
    try {
      const decided = { ...call, decision: await awaitClientTool(context, call, counted) };
      if (isRefused(decided)) first ??= decided;
      if (first !== undefined) endWaits.abort(new CancellationError('another call was refused'));
      return decided;
    } catch (error) {
      if (first === undefined || terms.signal.aborted) throw error;
      return call;
    }
  });
  try {
    return { calls: await Promise.all(settled), refused: first };
  } finally {
    endWaits.abort(new CancellationError('the review has ended'));
  }
}

/**
 * Returns a callback for several calls that wait at the same time. The request is reported as waiting while at least
 * one of the calls waits.
 */
function countedWaits(onWait: WaitTerms['onWait']): (isWaiting: boolean) => void {
  let count = 0;
  return (isWaiting) => {
    count += isWaiting ? 1 : -1;
    onWait?.(count > 0);
  };
}

function isRefused({ request, decision }: ProposedCall): boolean {
  const { settled, stopReason, executedAction } = decision;
  if (!settled) return false;
  const action = executedAction?.kind;
  const isApproved = stopReason === '' && action?.case === 'clientTool';
  return !isApproved || action.value.tool !== request.tool;
}

function argumentsOf({ executedAction }: Decision): string {
  const action = executedAction?.kind;
  return action?.case === 'clientTool' ? action.value.argumentsJson : '';
}

function pending(
  { request, decision: { approvalId } }: ProposedCall,
  { holdMs }: WaitTerms,
): UnavailableError {
  return new UnavailableError(
    'APPROVAL_PENDING',
    `${request.tool} waits for approval ${approvalId}, which was not given within ${holdMs / 1_000} s. Nothing was executed. Repeat the same request to get the answer; the repeat is not charged.`,
    { approval_id: approvalId, retry_after_ms: String(RETRY_AFTER_MS) },
  );
}
