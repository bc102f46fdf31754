import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import type { CallToolResponse } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { agentKeyText, type CallKey, PreconditionError, TOOL_CALL_TIMEOUT_MS } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { needsNewWrit } from '../../domain/retry-with-new-credentials.ts';
import { type ToolAnswer, UNKNOWN_OUTCOME } from '../../domain/tool-answer.ts';
import { EPOCH } from '../../peers/peers.ts';
import { isOutcomeUnknown } from '../../peers/tool-peers.ts';
import { type ToolCallRow, toolCallKeyOf } from '../../store/tool-calls.ts';
import { actFor, pauseAfter } from '../agent/act-for-agent.ts';
import { awaitDecision, noteApproval } from '../waiting-calls/await-decision.ts';
import type { WaitTerms } from '../waiting-calls/waiting-requests.ts';
import type { ToolRequest } from './find-or-insert-tool-call.ts';
import { withReceipts } from './with-receipts.ts';

/**
 * Maximum attempts, the first included. Each further attempt uses a new writ: a writ may expire while the call waits
 * for capacity of its tool source in the gateway, or be signed with a key that the gateway does not know yet. Within an
 * attempt, the RPC client retries UNAVAILABLE and ABORTED; an error that remains after that is final, so that no
 * failure is retried twice.
 */
const ATTEMPTS = 10;

/**
 * Reviews a tool call, waits for a person if one must decide, and executes it with its writ (AP-3, AP-4). Every step is
 * idempotent under the id of the call, so that any replica can continue where another one stopped.
 * @throws the reason of the terms' signal; what supervisor, gateway, slots and tokens throw
 */
export async function callTool(
  context: ProxyContext,
  row: ToolCallRow,
  request: ToolRequest,
  terms: WaitTerms,
): Promise<ToolAnswer> {
  const call = toolCallKeyOf(row);
  const decision = await context.sharedWork.share(`review ${textOf(call)}`, () =>
    review(context, call, request),
  );
  if (decision.settled) return await finishCall(context, call, decision, terms);
  await noteApproval(context, call, decision.approvalId);
  if (!(await awaitDecision(context, call, decision.approvalId, terms))) {
    return { kind: 'waiting', approvalId: decision.approvalId };
  }
  return await finishCall(context, call, await currentDecision(context, call), terms);
}

/**
 * Executes an approved call and, if its outcome is unknown, waits for a person to determine the outcome; returns a
 * refused or waiting answer for any other decision.
 */
export async function finishCall(
  context: ProxyContext,
  call: CallKey,
  decision: Decision,
  terms: WaitTerms,
): Promise<ToolAnswer> {
  if (!decision.settled) return { kind: 'waiting', approvalId: decision.approvalId };
  const action = decision.executedAction?.kind;
  if (decision.stopReason !== '' || action?.case !== 'tool') return { kind: 'refused', decision };
  const outcome = await executeOnce(context, call, decision);
  if (!isOutcomeUnknown(outcome)) return { kind: 'executed', decision, outcome };
  // A person determines the outcome; the gateway then returns the outcome that the person recorded (TG-5).
  await noteApproval(context, call, UNKNOWN_OUTCOME);
  if (!(await awaitDecision(context, call, UNKNOWN_OUTCOME, terms))) {
    return { kind: 'waiting', approvalId: UNKNOWN_OUTCOME };
  }
  return { kind: 'executed', decision, outcome: await executeOnce(context, call, decision) };
}

/** Returns the decision on a call as it is now. */
export async function currentDecision(context: ProxyContext, call: CallKey): Promise<Decision> {
  return await actFor(context, call, 'supervisor', (options) =>
    context.peers.getDecision(call.callId, options),
  );
}

async function review(
  context: ProxyContext,
  call: CallKey,
  { tool, argumentsJson }: ToolRequest,
): Promise<Decision> {
  const { peers, receipts } = context;
  return await withReceipts(receipts, call, (carried) =>
    actFor(context, call, 'supervisor', (options) =>
      peers.reviewTool({ callId: call.callId, tool, argumentsJson, ...carried }, options),
    ),
  );
}

/**
 * Executes a call once for all requests in this process that wait for the same call; the execution continues when their
 * clients disconnect.
 */
async function executeOnce(
  context: ProxyContext,
  call: CallKey,
  decision: Decision,
): Promise<CallToolResponse> {
  return await context.sharedWork.share(`execute ${textOf(call)}`, () =>
    execute(context, call, decision),
  );
}

async function execute(
  context: ProxyContext,
  call: CallKey,
  decision: Decision,
): Promise<CallToolResponse> {
  const { peers, receipts } = context;
  const action = decision.executedAction?.kind;
  if (action?.case !== 'tool')
    throw new PreconditionError('RUN_ENDED', 'The decision contains no tool call to execute.');
  const { callId, ...agent } = call;
  const { tool, argumentsJson } = action.value;
  let { writ } = decision;
  for (let attempt = 1; ; attempt++) {
    if (writ === '') ({ writ } = await currentDecision(context, call));
    try {
      const outcome = await peers.callTool(
        { agent, callId, tool, argumentsJson, writ, step: decision.step },
        { epoch: EPOCH, timeoutMs: TOOL_CALL_TIMEOUT_MS, retry: true, retryAborted: true },
      );
      const content = outcome.result?.content ?? '';
      receipts.add(agent, { callId, receipt: outcome.receipt, content });
      return outcome;
    } catch (error) {
      if (!needsNewWrit(error) || attempt === ATTEMPTS) throw error;
      writ = '';
      await pauseAfter(attempt);
    }
  }
}

function textOf(call: CallKey): string {
  return `${agentKeyText(call)}/${call.callId}`;
}
