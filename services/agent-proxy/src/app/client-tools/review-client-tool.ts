import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import { type AgentKey, type CallKey, PreconditionError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { toolCallKeyOf } from '../../store/tool-calls.ts';
import { actFor } from '../agent/act-for-agent.ts';
import { awaitDecision, noteApproval } from '../tools/await-decision.ts';
import type { WaitTerms } from '../tools/waits.ts';
import { type ClientToolRequest, numberClientTool, useApproval } from './number-client-tool.ts';

/**
 * Reviews a tool call that the client is about to execute itself, and waits for a person if one must decide (AP-5). Returns
 * the decision; one that is not settled waits for its approval still, and nothing may be executed.
 * @throws PreconditionError APPROVAL_USED; the reason of the terms' signal; what supervisor and slots throw
 */
export async function reviewClientTool(
  context: ProxyContext,
  agent: AgentKey,
  request: ClientToolRequest,
  terms: WaitTerms,
): Promise<Decision> {
  const row = await numberClientTool(context, agent, request);
  const call = toolCallKeyOf(row);
  const decision = await decide(context, call, request, terms);
  // A decision of policy alone belongs to its own call.
  if (!decision.settled || decision.approvalId === '') return decision;
  if (await useApproval(context, row, request.toolUseId)) return decision;
  throw new PreconditionError(
    'APPROVAL_USED',
    `Approval ${decision.approvalId} was used by an equal call; repeat the call.`,
    { approval_id: decision.approvalId },
  );
}

async function decide(
  context: ProxyContext,
  call: CallKey,
  request: ClientToolRequest,
  terms: WaitTerms,
): Promise<Decision> {
  const decision = await review(context, call, request);
  if (decision.settled) return decision;
  await noteApproval(context, call, decision.approvalId);
  if (!(await awaitDecision(context, call, decision.approvalId, terms))) return decision;
  return await review(context, call, request);
}

/** The recorded decision, when the call was reviewed before. */
async function review(
  context: ProxyContext,
  call: CallKey,
  { tool, argumentsJson }: ClientToolRequest,
): Promise<Decision> {
  const { peers, receipts } = context;
  const shown = receipts.peek(call);
  const decision = await actFor(context, call, 'supervisor', (options) =>
    peers.reviewClientTool({ callId: call.callId, tool, argumentsJson, ...shown }, options),
  );
  receipts.delivered(call, shown.receipts);
  return decision;
}
