import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import { type AgentKey, type JsonObject, parseJsonStrict } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { HookedCall, HookVerdict } from '../../wire/claude-code-hook.ts';
import type { WaitTerms } from '../waiting-calls/waiting-requests.ts';
import type { ClientToolRequest } from './number-client-tool.ts';
import { reviewClientTool } from './review-client-tool.ts';

/** Matches the names of tools of an MCP server that is named `writ` in the settings of Claude Code. */
const OWN_TOOL = /^mcp__writ__(.+)$/;

/**
 * Returns the verdict on a tool call of Claude Code or Codex (AP-5). Calls of tools that the MCP endpoint serves to
 * this agent are allowed here, because the MCP endpoint reviews them and executes them with a writ.
 * @throws what reviewClientTool and ToolLists.of throw
 */
export async function reviewHookedCall(
  context: ProxyContext,
  agent: AgentKey,
  call: HookedCall,
  terms: WaitTerms,
): Promise<HookVerdict> {
  if (await isServed(context, agent, call.tool)) {
    return { decision: 'allow', reason: 'The MCP endpoint of Writ reviews this call.' };
  }
  return verdictOf(await reviewClientTool(context, agent, requestOfHook(call), terms), call);
}

/**
 * Whether the MCP endpoint serves this tool to the agent and therefore reviews its calls.
 * @throws what ToolLists.of throws
 */
export async function isServed(
  context: ProxyContext,
  agent: AgentKey,
  tool: string,
): Promise<boolean> {
  const own = OWN_TOOL.exec(tool)?.[1];
  if (own === undefined) return false;
  const tools = await context.toolLists.of(context, agent);
  return tools.some(({ name }) => name === own);
}

/**
 * Returns the request for a call reported by a hook. The model call is unknown, because a hook does not name the answer
 * that contains the call.
 */
export function requestOfHook(call: HookedCall): ClientToolRequest {
  return { ...call, modelCallId: '', definitionDigest: '' };
}

function verdictOf(decision: Decision, { tool, argumentsJson }: HookedCall): HookVerdict {
  const {
    settled,
    approvalId,
    stopReason,
    reason,
    executedAction,
    humanApproval: human,
  } = decision;
  if (!settled) {
    const text = `Nothing was executed: the call waits for approval ${approvalId}. Repeat the same call later.`;
    return { decision: 'deny', reason: text };
  }
  const action = executedAction?.kind;
  const isApproved = stopReason === '' && action?.case === 'clientTool';
  if (!isApproved || action.value.tool !== tool) {
    const comment = human?.comment ? ` ${human.comment}` : '';
    return { decision: 'deny', reason: `Refused: ${stopReason || reason}.${comment}` };
  }
  const by = human === undefined ? `by policy: ${reason}` : 'by a person';
  const edited = action.value.argumentsJson;
  if (edited === argumentsJson) return { decision: 'allow', reason: `Approved ${by}.` };
  // The supervisor sends RFC 8785 bytes of an object.
  const updatedInput = parseJsonStrict(edited, { field: 'arguments_json' }) as JsonObject;
  return { decision: 'allow', reason: `Approved ${by}, with other arguments.`, updatedInput };
}
