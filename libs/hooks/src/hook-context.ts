import { durationMs, timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type HookEvent,
  type HookEventType,
  HookEventTypeSchema,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { InvalidRequestError } from '@writ/kernel';

/** Name of a moment of a run, as it stands in subjects and logs (HK-1). */
export type HookEventName = Exclude<keyof typeof HookEventType, 'UNSPECIFIED'>;

/** Every moment that can be observed (HK-1). */
export const HOOK_EVENTS: readonly HookEventName[] = Object.freeze(
  HookEventTypeSchema.values.map(({ localName }) => localName).filter(isHookEventName),
);

/** Tokens of one model call, or of a whole run in RUN_END. */
export interface HookUsage {
  readonly input_tokens: number;
  readonly cached_input_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
}

/** What a callback sees: ids and figures, never content, frozen to the bottom (HK-3). What an event does not have is absent. */
export interface HookContext {
  readonly event: HookEventName;
  /** The same for every repeat of the same event (HK-1). */
  readonly event_id: string;
  readonly emitter: string;
  readonly tenant: string;
  /** When it happened, on the emitter's clock. */
  readonly at: string;
  readonly run_id?: string;
  readonly session_id?: string;
  /** Name of the agent's manifest. */
  readonly agent_name?: string;
  /** Which agent of the run. */
  readonly agent_id?: string;
  /** Step of the agent, from 1. */
  readonly step?: number;
  readonly call_id?: string;
  readonly tool_name?: string;
  readonly model?: string;
  /** `ok`, or why not: a stop reason or a refusal. */
  readonly status?: string;
  readonly duration_ms?: number;
  readonly usage?: HookUsage;
  /** Billionths of a USD; goes with `usage`. */
  readonly cost_nano_usd?: bigint;
  /** The figures are an estimate; goes with `usage`. */
  readonly estimated?: boolean;
  /** Attempt of a model call, from 1. */
  readonly attempt?: number;
  readonly approval_id?: string;
  readonly halt_id?: string;
  /** The other agent: the child of a HANDOFF, the beneficiary of a pause. */
  readonly other_agent_id?: string;
  /** Which cap or guardrail. */
  readonly dimension?: string;
  readonly traceparent?: string;
}

/**
 * The frozen context of an event.
 * @throws InvalidRequestError UNKNOWN_HOOK_EVENT when the event is of a type that this version does not know
 */
export function toHookContext(event: HookEvent): HookContext {
  const name = HookEventTypeSchema.value[event.type]?.localName;
  if (name === undefined || !isHookEventName(name))
    throw new InvalidRequestError(
      'UNKNOWN_HOOK_EVENT',
      `type ${event.type} of event ${event.eventId} is not known to this version.`,
      { field: 'type' },
    );
  const context: HookContext = {
    event: name,
    event_id: event.eventId,
    emitter: event.emitter,
    tenant: event.tenant,
    at: event.eventTime === undefined ? '' : timestampDate(event.eventTime).toISOString(),
    ...text('run_id', event.runId),
    ...text('session_id', event.sessionId),
    ...text('agent_name', event.agent?.name),
    ...text('agent_id', event.agent?.instance),
    ...number('step', event.step),
    ...text('call_id', event.callId),
    ...text('tool_name', event.toolName),
    ...text('model', event.model),
    ...text('status', event.status),
    ...(event.duration === undefined ? {} : { duration_ms: durationMs(event.duration) }),
    ...spent(event),
    ...number('attempt', event.attempt),
    ...text('approval_id', event.approvalId),
    ...text('halt_id', event.haltId),
    ...text('other_agent_id', event.otherAgent?.instance),
    ...text('dimension', event.dimension),
    ...text('traceparent', event.traceparent),
  };
  return Object.freeze(context);
}

function spent({ usage, costNanoUsd, estimated }: HookEvent): Partial<HookContext> {
  if (usage === undefined) return {};
  return {
    usage: Object.freeze({
      input_tokens: Number(usage.inputTokens),
      cached_input_tokens: Number(usage.cachedInputTokens),
      output_tokens: Number(usage.outputTokens),
      reasoning_tokens: Number(usage.reasoningTokens),
    }),
    cost_nano_usd: costNanoUsd,
    estimated,
  };
}

function text<K extends keyof HookContext>(key: K, value: string | undefined) {
  return value === undefined || value === '' ? {} : { [key]: value };
}

function number<K extends keyof HookContext>(key: K, value: number) {
  return value === 0 ? {} : { [key]: value };
}

function isHookEventName(name: string): name is HookEventName {
  return name !== 'UNSPECIFIED';
}
