import { DeadlineError, derivedId, type JsonObject, withTimeout } from '@writ/kernel';
import {
  ATTR_GEN_AI_AGENT_ID,
  ATTR_GEN_AI_AGENT_NAME,
  ATTR_GEN_AI_CONVERSATION_ID,
  ATTR_GEN_AI_OPERATION_NAME,
  ATTR_GEN_AI_TOOL_CALL_ID,
  ATTR_GEN_AI_TOOL_NAME,
  ATTR_GEN_AI_TOOL_TYPE,
  ATTR_WRIT_ATTEMPT,
  ATTR_WRIT_CALL_ID,
  ATTR_WRIT_RUN_ID,
  ATTR_WRIT_STOP_REASON,
  ATTR_WRIT_TENANT,
  ATTR_WRIT_TOOL,
  executeToolSpan,
  GenAiOperation,
  SpanStatusCode,
  traceparentOf,
  withSpan,
} from '@writ/telemetry';
import type { GatewayContext } from '../../context.ts';
import type { Ending } from '../../domain/call-state.ts';
import type { ToolOutput } from '../../domain/cap-output.ts';
import type { Tool } from '../../domain/tool.ts';
import type { OpenSource } from '../../sources/open-source.ts';
import type { ToolAnswer } from '../../sources/source.ts';
import type { CallRow } from '../../store/calls.ts';

/** Result of one execution of a tool. */
export interface ToolRun {
  readonly ending: Ending;
  /** Only for `ok`. */
  readonly output?: ToolOutput;
  /** Only for `failed`. */
  readonly stopReason?: string;
  readonly message: string;
  readonly durationMs: number;
}

/** Input of {@link runTool}. */
export interface RunnableCall {
  readonly call: CallRow;
  readonly tool: Tool;
  readonly args: JsonObject;
  readonly argumentsJson: string;
  readonly source: OpenSource;
}

/**
 * Runs a tool once, within its timeout, in a span `execute_tool` (SYS-1). Cancellation aborts the tool's
 * signal; the tool may still return its result before the timeout. Never rejects.
 */
export function runTool(
  { telemetry, clock }: Pick<GatewayContext, 'telemetry' | 'clock'>,
  runnable: RunnableCall,
  cancelSignal: AbortSignal,
): Promise<ToolRun> {
  const { call, tool } = runnable;
  const attributes = {
    [ATTR_GEN_AI_OPERATION_NAME]: GenAiOperation.executeTool,
    [ATTR_GEN_AI_TOOL_NAME]: tool.name,
    [ATTR_GEN_AI_TOOL_TYPE]: 'function',
    [ATTR_GEN_AI_TOOL_CALL_ID]: call.call_id,
    [ATTR_GEN_AI_AGENT_ID]: call.agent_instance,
    [ATTR_GEN_AI_AGENT_NAME]: call.agent_name,
    [ATTR_GEN_AI_CONVERSATION_ID]: call.session_id,
    [ATTR_WRIT_TENANT]: call.tenant,
    [ATTR_WRIT_RUN_ID]: call.run_id,
    [ATTR_WRIT_CALL_ID]: call.call_id,
    [ATTR_WRIT_TOOL]: tool.name,
    [ATTR_WRIT_ATTEMPT]: call.attempts,
  };
  return withSpan(telemetry.tracer, executeToolSpan(tool.name), { attributes }, async (span) => {
    const started = performance.now();
    const deadline = new Date(clock.now().getTime() + tool.timeoutMs);
    const answer = await runWithTimeout(runnable, deadline, cancelSignal);
    const durationMs = Math.max(0, Math.round(performance.now() - started));
    const run = { ...toRun(tool, answer, cancelSignal.aborted), durationMs };
    if (run.ending !== 'ok') {
      span.setAttribute(ATTR_WRIT_STOP_REASON, run.stopReason ?? run.ending);
      span.setStatus({ code: SpanStatusCode.ERROR, message: run.stopReason ?? run.ending });
    }
    return run;
  });
}

async function runWithTimeout(
  { call, tool, args, argumentsJson, source }: RunnableCall,
  deadline: Date,
  cancelSignal: AbortSignal,
): Promise<ToolAnswer> {
  if (cancelSignal.aborted) {
    return { kind: 'cancelled', message: `${tool.name} was cancelled before it started.` };
  }
  const stop = new AbortController();
  const message = `${tool.name} did not respond within its timeout of ${tool.timeoutMs} ms.`;
  const onTimeout = (): ToolAnswer => {
    stop.abort(new DeadlineError('TOOL_TIMEOUT', message, { timeout_ms: String(tool.timeoutMs) }));
    return { kind: 'lost', message };
  };
  const cancel = () => stop.abort(cancelSignal.reason);
  cancelSignal.addEventListener('abort', cancel, { once: true });
  try {
    const answer = source.invoke({
      tool: tool.name,
      argumentsJson,
      args,
      idempotencyKey: idempotencyKey(call),
      tenant: call.tenant,
      runId: call.run_id,
      agentName: call.agent_name,
      callId: call.call_id,
      traceparent: traceparentOf(),
      deadline,
      timeoutMs: tool.timeoutMs,
      signal: stop.signal,
    });
    return await withTimeout(answer, tool.timeoutMs, onTimeout);
  } catch {
    // A source must not reject; if a source rejects, the outcome of its tool is unknown.
    return { kind: 'lost', message: `${tool.name} did not respond.` };
  } finally {
    cancelSignal.removeEventListener('abort', cancel);
  }
}

function toRun(
  { name, sideEffect }: Tool,
  answer: ToolAnswer,
  isCancelled: boolean,
): Omit<ToolRun, 'durationMs'> {
  switch (answer.kind) {
    case 'output':
      return { ending: 'ok', output: answer.output, message: '' };
    case 'failed':
      return { ending: 'failed', stopReason: `tool_error:${name}`, message: answer.message };
    case 'bad_result':
      return { ending: 'failed', stopReason: `tool_bad_result:${name}`, message: answer.message };
    case 'cancelled':
      if (sideEffect !== 'destructive') return { ending: 'interrupted', message: answer.message };
      // The tool did not run, so the outcome is known. A call of a destructive tool is not attempted again.
      return { ending: 'failed', stopReason: `tool_error:${name}`, message: answer.message };
    case 'lost':
      return { ending: isCancelled ? 'interrupted' : 'lost', message: answer.message };
  }
}

/** The same key for every repeat of one call, and a different one for every other call (TG-5). */
function idempotencyKey(call: CallRow): string {
  return derivedId('idem', call.tenant, call.run_id, call.agent_instance, call.call_id);
}
