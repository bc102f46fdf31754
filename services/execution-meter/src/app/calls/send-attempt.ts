import { derivedId } from '@writ/kernel';
import {
  ATTR_ERROR_TYPE,
  ATTR_GEN_AI_AGENT_ID,
  ATTR_GEN_AI_AGENT_NAME,
  ATTR_GEN_AI_CONVERSATION_ID,
  ATTR_GEN_AI_INPUT_MESSAGES,
  ATTR_GEN_AI_OPERATION_NAME,
  ATTR_GEN_AI_OUTPUT_MESSAGES,
  ATTR_GEN_AI_OUTPUT_TYPE,
  ATTR_GEN_AI_PROVIDER_NAME,
  ATTR_GEN_AI_REQUEST_MAX_TOKENS,
  ATTR_GEN_AI_REQUEST_MODEL,
  ATTR_GEN_AI_REQUEST_STREAM,
  ATTR_GEN_AI_REQUEST_TEMPERATURE,
  ATTR_GEN_AI_RESPONSE_FINISH_REASONS,
  ATTR_GEN_AI_RESPONSE_ID,
  ATTR_GEN_AI_RESPONSE_MODEL,
  ATTR_GEN_AI_TOKEN_TYPE,
  ATTR_GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS,
  ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
  ATTR_GEN_AI_USAGE_INPUT_TOKENS,
  ATTR_GEN_AI_USAGE_OUTPUT_TOKENS,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_WRIT_ATTEMPT,
  ATTR_WRIT_CALL_ID,
  ATTR_WRIT_COST_NANO_USD,
  ATTR_WRIT_RUN_ID,
  ATTR_WRIT_STEP,
  ATTR_WRIT_TENANT,
  ATTR_WRIT_USAGE_ESTIMATED,
  chatSpan,
  GenAiOperation,
  type Metrics,
  type Span,
  SpanKind,
  SpanStatusCode,
  traceparentOf,
  withSpan,
} from '@writ/telemetry';
import type { MeterContext } from '../../context.ts';
import type { ModelEntry } from '../../domain/catalog/catalog.ts';
import { capturedInput, capturedOutput } from '../../domain/chat/captured.ts';
import { type ChatRequest, isEmptyAnswer } from '../../domain/chat/chat.ts';
import { contradictionIn, type UsageLimits } from '../../domain/chat/reported-usage.ts';
import type { Spending } from '../../domain/ledger/spending.ts';
import type { AttemptOutcome, Provider } from '../../providers/provider.ts';
import { attemptTimeoutMs } from './call-planner.ts';
import type { OpenAttempt } from './call-record.ts';
import type { CallRequest } from './call-request.ts';

/** An attempt that {@link sendAttempt} sends. */
export interface SentAttempt {
  readonly request: CallRequest;
  readonly model: ModelEntry;
  readonly apiKey: string | undefined;
  readonly open: OpenAttempt;
  /** Maximum number of prompt tokens that the provider can have used. */
  readonly promptTokens: bigint;
  readonly signal: AbortSignal;
  readonly onText: (text: string) => void;
  readonly onEvent: (json: string, isLast: boolean) => void;
  /** Returns the spending of an outcome, for the span. */
  readonly spentOn: (outcome: AttemptOutcome) => Promise<Spending>;
}

/** Sends an attempt to its provider in a span of the trace of the run (SYS-1). */
export function sendAttempt(
  context: MeterContext,
  provider: Provider,
  sent: SentAttempt,
): Promise<AttemptOutcome> {
  const { request, model, apiKey, open, promptTokens, signal, onText, onEvent, spentOn } = sent;
  const { chat } = request;
  return withSpan(
    context.telemetry.tracer,
    chatSpan(model.providerModel),
    {
      kind: SpanKind.CLIENT,
      attributes: {
        [ATTR_GEN_AI_OPERATION_NAME]: GenAiOperation.chat,
        [ATTR_GEN_AI_PROVIDER_NAME]: model.api,
        [ATTR_GEN_AI_REQUEST_MODEL]: model.providerModel,
        ...serverAttributes(model),
        [ATTR_GEN_AI_REQUEST_MAX_TOKENS]: Number(open.hold.usage.output),
        [ATTR_GEN_AI_REQUEST_STREAM]: model.streaming && chat.native?.stream !== false,
        [ATTR_GEN_AI_OUTPUT_TYPE]: chat.json ? 'json' : 'text',
        [ATTR_GEN_AI_AGENT_NAME]: open.tab.agentName,
        [ATTR_GEN_AI_AGENT_ID]: request.instance,
        [ATTR_GEN_AI_CONVERSATION_ID]: open.tab.sessionId,
        [ATTR_WRIT_TENANT]: request.tenant,
        [ATTR_WRIT_RUN_ID]: request.runId,
        [ATTR_WRIT_CALL_ID]: request.callId,
        [ATTR_WRIT_STEP]: request.step,
        [ATTR_WRIT_ATTEMPT]: open.attempt,
        ...(chat.temperature === undefined
          ? {}
          : { [ATTR_GEN_AI_REQUEST_TEMPERATURE]: chat.temperature }),
      },
    },
    async (span) => {
      const { tenant, runId, instance, callId } = request;
      const startedAt = performance.now();
      const received = await provider({
        model,
        apiKey,
        chat,
        maxOutputTokens: open.hold.usage.output,
        timeoutMs: attemptTimeoutMs(request, model),
        traceparent: traceparentOf(),
        requestId: derivedId('call', tenant, runId, instance, callId, String(open.attempt)),
        signal,
        mayStore: open.tab.retention !== 'none',
        onText,
        onEvent,
      });
      const limits = { promptTokens, outputTokens: open.hold.usage.output };
      const outcome = withPossibleUsage(context, received, limits, request);
      recordOutcome(span, outcome);
      if (span.isRecording()) {
        const { cost, estimated } = await spentOn(outcome);
        span.setAttribute(ATTR_WRIT_COST_NANO_USD, Number(cost));
        span.setAttribute(ATTR_WRIT_USAGE_ESTIMATED, estimated);
      }
      // Content is recorded only with permanent retention, because traces are not deleted together with the history of
      // a run.
      if (context.config.captureContent && open.tab.retention === 'permanent' && span.isRecording())
        recordContent(span, chat, outcome);
      recordMetrics(context.telemetry.metrics, model, outcome, performance.now() - startedAt);
      return outcome;
    },
  );
}

/** Removes usage that contradicts the request or the answer; the usage is then estimated (EM-8). */
function withPossibleUsage(
  { telemetry }: MeterContext,
  outcome: AttemptOutcome,
  limits: Omit<UsageLimits, 'hasContent'>,
  { model, tenant, runId, callId }: CallRequest,
): AttemptOutcome {
  if (outcome.type === 'aborted' || outcome.usage === undefined) return outcome;
  const hasContent = outcome.type === 'answered' && !isEmptyAnswer(outcome.answer);
  const contradiction = contradictionIn(outcome.usage, { ...limits, hasContent });
  if (contradiction === undefined) return outcome;
  const ids = { model, tenant, run_id: runId, call_id: callId };
  telemetry.log.error(ids, 'usage reported by the provider is impossible; it is estimated');
  telemetry.metrics.count('impossibleUsage', { [ATTR_GEN_AI_REQUEST_MODEL]: model });
  if (outcome.type === 'failed') return { ...outcome, usage: undefined };
  return { ...outcome, usage: undefined, warnings: [...outcome.warnings, contradiction] };
}

/** Returns the span attributes for the address of the provider. */
function serverAttributes({ baseUrl }: ModelEntry): Readonly<Record<string, string | number>> {
  const { hostname, port, protocol } = new URL(baseUrl);
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  return { [ATTR_SERVER_ADDRESS]: hostname, [ATTR_SERVER_PORT]: number };
}

/** Returns the error.type of an attempt, the same in its span and its metric; undefined for an answer. */
function errorTypeOf(outcome: AttemptOutcome): string | undefined {
  if (outcome.type === 'answered') return undefined;
  return outcome.type === 'failed' ? String(outcome.failure.what) : 'cancelled';
}

function recordMetrics(
  metrics: Metrics,
  { api, providerModel }: ModelEntry,
  outcome: AttemptOutcome,
  durationMs: number,
): void {
  if (!metrics.enabled) return;
  const labels = {
    [ATTR_GEN_AI_OPERATION_NAME]: GenAiOperation.chat,
    [ATTR_GEN_AI_PROVIDER_NAME]: api,
    [ATTR_GEN_AI_REQUEST_MODEL]: providerModel,
  };
  const error = errorTypeOf(outcome);
  metrics.record('genAiSeconds', durationMs / 1_000, { ...labels, [ATTR_ERROR_TYPE]: error });
  if (outcome.type === 'aborted' || outcome.usage === undefined) return;
  const { input, output } = outcome.usage;
  const of = (type: string) => ({ ...labels, [ATTR_GEN_AI_TOKEN_TYPE]: type });
  metrics.record('genAiTokens', Number(input), of('input'));
  metrics.record('genAiTokens', Number(output), of('output'));
}

function recordContent(span: Span, { messages }: ChatRequest, outcome: AttemptOutcome): void {
  span.setAttribute(ATTR_GEN_AI_INPUT_MESSAGES, capturedInput(messages));
  if (outcome.type === 'answered')
    span.setAttribute(ATTR_GEN_AI_OUTPUT_MESSAGES, capturedOutput(outcome.answer));
}

function recordOutcome(span: Span, outcome: AttemptOutcome): void {
  if (outcome.type === 'answered') {
    span.setAttribute(ATTR_GEN_AI_RESPONSE_MODEL, outcome.answer.providerModel);
    const { responseId, finishReason } = outcome.terms;
    if (responseId !== undefined) span.setAttribute(ATTR_GEN_AI_RESPONSE_ID, responseId);
    if (finishReason !== undefined)
      span.setAttribute(ATTR_GEN_AI_RESPONSE_FINISH_REASONS, [finishReason]);
  }
  const error = errorTypeOf(outcome);
  if (error !== undefined) {
    span.setAttribute(ATTR_ERROR_TYPE, error);
    span.setStatus({ code: SpanStatusCode.ERROR, message: error });
  }
  if (outcome.type === 'aborted' || outcome.usage === undefined) return;
  const { input, cachedInput, cacheWrite, output } = outcome.usage;
  span.setAttribute(ATTR_GEN_AI_USAGE_INPUT_TOKENS, Number(input));
  span.setAttribute(ATTR_GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, Number(cachedInput));
  span.setAttribute(ATTR_GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS, Number(cacheWrite));
  span.setAttribute(ATTR_GEN_AI_USAGE_OUTPUT_TOKENS, Number(output));
}
