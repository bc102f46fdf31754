import type { AgentKey } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';
import { saveToolCall, toolCallKeyOf } from '../../store/tool-calls.ts';
import type { HookedResult } from '../../wire/claude-code-hook.ts';
import { knownClientTool, storeClientTool } from './number-client-tool.ts';
import { isServed, requestOfHook } from './review-hooked-call.ts';

/**
 * Records durably the report of a client about a tool call that it has executed: status, digest and size, never the
 * result (AP-5). The report is not verified, so no fact and no decision depends on it. Further reports about the same
 * call are ignored.
 */
export async function recordClientResult(
  context: ProxyContext,
  agent: AgentKey,
  { call, status, sha256, bytes }: HookedResult,
): Promise<void> {
  // The gateway has executed and recorded this call.
  if (await isServed(context, agent, call.tool)) return;
  const { store, clock, telemetry } = context;
  const request = requestOfHook(call);
  const at = clock.now();
  const work = async (trx: ProxyTransaction) => {
    const known = await knownClientTool(trx, agent, request);
    const found = known ?? (await storeClientTool(trx, agent, request, at));
    if (found.result_at !== null) return undefined;
    const result = { result_at: at, result_status: status, result_sha256: sha256 };
    await saveToolCall(trx, toolCallKeyOf(found), { ...result, result_bytes: bytes });
    return { row: found, isReviewed: known !== undefined };
  };
  const recorded = await store.transaction(work, { run: agent });
  if (recorded === undefined) return;
  const { row, isReviewed } = recorded;
  const { run_id, instance, call_id, tool } = row;
  const fields = { run_id, agent: instance, call_id, tool, status, sha256, bytes };
  if (isReviewed) telemetry.log.info(fields, 'client tool executed');
  else telemetry.log.warn(fields, 'client tool executed without a review');
}
