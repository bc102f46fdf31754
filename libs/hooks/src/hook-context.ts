import { durationMs, timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type HookEvent,
  type HookEventType,
  HookEventTypeSchema,
} from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { BudgetLevel, BudgetLevelSchema } from '@writ/contracts/writ/meter/v1/tab_pb';
import { InvalidRequestError } from '@writ/kernel';

/** Name of a hook event, as in subjects and logs (HK-1). */
export type HookEventName = Exclude<keyof typeof HookEventType, 'UNSPECIFIED'>;

/** All hook events (HK-1). */
export const HOOK_EVENTS: readonly HookEventName[] = Object.freeze(
  HookEventTypeSchema.values.map(({ localName }) => localName).filter(isHookEventName),
);

/** Token usage of a model call. In a RUN_END event: the usage of the agent, or of the whole run for the root agent. */
export interface HookUsage {
  readonly input_tokens: number;
  readonly cached_input_tokens: number;
  readonly cache_write_input_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
}

/** A checkpoint of the audit chain of a tenant. */
export interface HookCheckpoint {
  /** Number of the checkpoint in its chain, from 1, without gaps. */
  readonly number: number;
  /** Number of records that it covers. */
  readonly count: number;
  /** The checkpoint as a signed JWS. `writ audit verify --checkpoint` accepts it. */
  readonly signed: string;
}

/**
 * The argument of a callback: metadata such as ids, names and numbers, never content; deeply frozen (HK-3). Unset fields
 * are absent.
 */
export interface HookContext {
  readonly event: HookEventName;
  /** Identical for redeliveries of an event (HK-1). */
  readonly event_id: string;
  readonly emitter: string;
  readonly tenant: string;
  /** Time of the event by the emitter's clock, ISO 8601. */
  readonly at: string;
  readonly run_id?: string;
  readonly session_id?: string;
  /** Name of the agent's manifest. */
  readonly agent_name?: string;
  /** Instance name of the agent. */
  readonly agent_id?: string;
  /** Step of the agent, from 1. */
  readonly step?: number;
  readonly call_id?: string;
  readonly tool_name?: string;
  /** SHA-256 of the exact argument bytes of a TOOL event, in hex. */
  readonly args_sha256?: string;
  /** Signals that the step or agent waits for, separated by commas, such as `human_reply:<correlation_id>`. */
  readonly waiting_for?: string;
  readonly model?: string;
  /** `ok`, a verdict, a stop reason, or the reason of a rejection or pause. */
  readonly status?: string;
  readonly duration_ms?: number;
  readonly usage?: HookUsage;
  /** Nano-USD; present with `usage`. */
  readonly cost_nano_usd?: bigint;
  /** Whether usage and cost are estimates; present with `usage`. */
  readonly estimated?: boolean;
  /** Attempt of a model call, from 1. */
  readonly attempt?: number;
  readonly approval_id?: string;
  readonly halt_id?: string;
  /** The signed checkpoint of an AUDIT_CHECKPOINT event. */
  readonly audit_checkpoint?: HookCheckpoint;
  /** The other agent: the child of a HANDOFF, the beneficiary of a pause. */
  readonly other_agent_id?: string;
  /** The budget dimension or guardrail. */
  readonly dimension?: string;
  /** Name of a LOG_ENTRY, such as `hitl.question`. */
  readonly log_message?: string;
  /** Ids of events of the agent that precede this event in the timeline. */
  readonly after?: readonly string[];
  /**
   * For events of spawn-budget: number of the reported change in the pool of the run. A later change has a higher
   * number.
   */
  readonly slot_sequence?: number;
  /** Percentage of the cap that a BUDGET_THRESHOLD event reports. */
  readonly threshold_percent?: number;
  /** Level of the cap of a BUDGET_THRESHOLD event: `agent`, `run`, `session`, `tenant_day` or `tenant_month`. */
  readonly budget_level?: string;
  readonly traceparent?: string;
}

/**
 * Converts an event to its context.
 * @throws InvalidRequestError UNKNOWN_HOOK_EVENT for an event type that this version does not support
 * @example
 * ```ts
 * import { createWritClient } from '@writ/client';
 * import { toHookContext } from '@writ/hooks';
 *
 * const client = createWritClient({ baseUrl: 'http://127.0.0.1:8080', apiKey: process.env.WRIT_API_KEY ?? '' });
 * for await (const { event } of client.runs.watchRun({ runId: process.argv[2] ?? '' })) {
 *   if (event?.entry.case === 'hook') console.log(toHookContext(event.entry.value));
 * }
 * ```
 */
export function toHookContext(event: HookEvent): HookContext {
  const context = knownHookContext(event);
  if (context !== undefined) return context;
  throw new InvalidRequestError(
    'UNKNOWN_HOOK_EVENT',
    `type ${event.type} of event ${event.eventId} is not supported by this version.`,
    { field: 'type' },
  );
}

/** Converts an event to its context; undefined for an event type that this version does not support (BD-6). */
export function knownHookContext(event: HookEvent): HookContext | undefined {
  const name = HookEventTypeSchema.value[event.type]?.localName;
  if (name === undefined || !isHookEventName(name)) return undefined;
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
    ...text('args_sha256', event.argsSha256),
    ...text('waiting_for', event.waitingFor),
    ...text('model', event.model),
    ...text('status', event.status),
    ...(event.duration === undefined ? {} : { duration_ms: durationMs(event.duration) }),
    ...spent(event),
    ...number('attempt', event.attempt),
    ...text('approval_id', event.approvalId),
    ...text('halt_id', event.haltId),
    ...checkpointOf(event),
    ...text('other_agent_id', event.otherAgent?.instance),
    ...text('dimension', event.dimension),
    ...text('log_message', event.logMessage),
    ...(event.after.length > 0 && { after: Object.freeze([...event.after]) }),
    ...number('slot_sequence', Number(event.slotSequence)),
    ...number('threshold_percent', event.thresholdPercent),
    ...text('budget_level', levelOf(event)),
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
      cache_write_input_tokens: Number(usage.cacheWriteInputTokens),
      output_tokens: Number(usage.outputTokens),
      reasoning_tokens: Number(usage.reasoningTokens),
    }),
    cost_nano_usd: costNanoUsd,
    estimated,
  };
}

function checkpointOf({ auditCheckpoint }: HookEvent): Partial<HookContext> {
  if (auditCheckpoint === undefined) return {};
  const { number: ordinal, count, signed } = auditCheckpoint;
  const checkpoint = { number: Number(ordinal), count: Number(count), signed };
  return { audit_checkpoint: Object.freeze(checkpoint) };
}

function levelOf({ budgetLevel }: HookEvent): string | undefined {
  if (budgetLevel === BudgetLevel.UNSPECIFIED) return undefined;
  return BudgetLevelSchema.value[budgetLevel]?.localName.toLowerCase();
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
