import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import { type AgentKey, isWritError, PreconditionError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { type ToolCallRow, toolCallKeyOf } from '../../store/tool-calls.ts';
import { actFor } from '../agent/act-for-agent.ts';
import { currentDecision } from '../tools/call-tool.ts';
import { withReceipts } from '../tools/with-receipts.ts';
import { awaitDecision, noteApproval } from '../waiting-calls/await-decision.ts';
import type { WaitTerms } from '../waiting-calls/waiting-requests.ts';
import {
  type ClientToolRequest,
  clientToolDigest,
  numberClientTool,
  useApproval,
} from './number-client-tool.ts';

/**
 * Reviews a tool call that the client is about to execute itself, and waits for a person if one must decide (AP-5).
 * Returns the decision. While it is not settled, the approval is pending and the client must not execute the call.
 * @throws PreconditionError APPROVAL_USED; the reason of the terms' signal; what supervisor, slots and tokens throw
 */
export async function reviewClientTool(
  context: ProxyContext,
  agent: AgentKey,
  request: ClientToolRequest,
  terms: WaitTerms,
): Promise<Decision> {
  const row = await numberClientTool(context, agent, request);
  const proposed = { row, request, decision: await proposeClientTool(context, row, request) };
  const decision = await awaitClientTool(context, proposed, terms);
  // A decision without an approval needs no record of the call that uses it.
  if (!decision.settled || decision.approvalId === '') return decision;
  if (await useApproval(context, row, request.toolUseId)) return decision;
  throw approvalUsed(decision);
}

/** The error of a call whose approval was used by an equal call. */
export function approvalUsed({ approvalId }: Decision): PreconditionError {
  return new PreconditionError(
    'APPROVAL_USED',
    `Approval ${approvalId} was used by an equal call; repeat the call.`,
    { approval_id: approvalId },
  );
}

/** A call with its decision, which may wait for a person. */
export interface ProposedCall {
  readonly row: ToolCallRow;
  readonly request: ClientToolRequest;
  readonly decision: Decision;
}

/** Waits for a person if one must decide, and returns the latest decision. */
export async function awaitClientTool(
  context: ProxyContext,
  { row, request, decision }: ProposedCall,
  terms: WaitTerms,
): Promise<Decision> {
  if (decision.settled) return decision;
  const call = toolCallKeyOf(row);
  if (!(await awaitDecision(context, call, decision.approvalId, terms))) return decision;
  return await proposeClientTool(context, row, request);
}

/**
 * Returns the decision on a call. Returns the recorded decision when the call was reviewed before: in the answer of the
 * model, by a hook, or as an equal call that waits. A pending approval is stored before the decision is returned, so
 * that an equal call can attach to it.
 */
export async function proposeClientTool(
  context: ProxyContext,
  row: ToolCallRow,
  request: ClientToolRequest,
): Promise<Decision> {
  const decision = await propose(context, row, request);
  if (!decision.settled) await noteApproval(context, toolCallKeyOf(row), decision.approvalId);
  return decision;
}

/**
 * Requests a decision. When the call id was already reviewed, returns that decision if the arguments equal those
 * proposed or approved there: a hook reports the approved arguments, which may differ from the proposed ones.
 */
async function propose(
  context: ProxyContext,
  row: ToolCallRow,
  request: ClientToolRequest,
): Promise<Decision> {
  const { peers, receipts } = context;
  const call = toolCallKeyOf(row);
  try {
    return await withReceipts(receipts, call, (carried) =>
      actFor(context, call, 'supervisor', (options) =>
        peers.reviewClientTool({ callId: call.callId, ...request, ...carried }, options),
      ),
    );
  } catch (error) {
    if (!isWritError(error) || error.reason !== 'CALL_ID_REUSED') throw error;
    const decision = await currentDecision(context, call);
    const isEqual = row.digest === clientToolDigest(request) || isApproved(decision, request);
    if (isEqual) return decision;
    throw error;
  }
}

/** Whether a decision approves exactly this call. */
function isApproved(
  { stopReason, executedAction }: Decision,
  { tool, argumentsJson }: ClientToolRequest,
): boolean {
  const action = executedAction?.kind;
  if (stopReason !== '' || action?.case !== 'clientTool') return false;
  return action.value.tool === tool && action.value.argumentsJson === argumentsJson;
}
