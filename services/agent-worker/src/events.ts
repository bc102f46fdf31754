import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { derivedId } from '@writ/kernel';
import { countAtCommit } from '@writ/service';
import { afterCommit, appendOutbox } from '@writ/store';
import {
  ATTR_WRIT_AGENT,
  ATTR_WRIT_EVENT_ID,
  ATTR_WRIT_RUN_ID,
  ATTR_WRIT_SENDER,
  ATTR_WRIT_STOP_REASON,
  ATTR_WRIT_TENANT,
  ATTR_WRIT_WAITING_FOR,
  contextFromTraceparent,
  type Telemetry,
  traceparentOf,
} from '@writ/telemetry';
import type { CarriedEvent } from './domain/agent/carried-event.ts';
import { waitKindOf } from './domain/agent/waits.ts';
import type { AgentRow } from './store/agents.ts';
import type { WorkerStore, WorkerTransaction } from './store/worker-store.ts';

const NAMES = [
  'STEP_START',
  'STEP_END',
  'FLOW_START',
  'FLOW_END',
  'GUARDRAIL_TRIP',
  'LOG_ENTRY',
] as const;

type EventName = (typeof NAMES)[number];

type EventAgent = Pick<
  AgentRow,
  'tenant' | 'run_id' | 'session_id' | 'name' | 'instance' | 'traceparent'
>;

/** A think-act cycle of an agent. */
interface StepScope {
  readonly agent: EventAgent;
  /** Numbered from 1. */
  readonly step: number;
}

/** A tripped guardrail of an agent. */
interface TripScope extends StepScope {
  readonly callId: string;
  /** The result of {@link earlierInStep}. */
  readonly after: string[];
  readonly guardrail: string;
}

/** A log entry of an agent. */
interface LogScope extends StepScope {
  readonly callId: string;
  /** The result of {@link earlierInStep}. */
  readonly after: string[];
  /** The message of the entry, without its content. */
  readonly logMessage: string;
}

/** The wait of an agent for a signal. */
interface EndedWait {
  readonly agent: EventAgent;
  /** Name of the signal. */
  readonly name: string;
  readonly since: Date;
  readonly at: Date;
  /** Subject of the client that sent the signal; absent when no client sent it. */
  readonly sender?: string | null;
  /** The stop reason of an agent that ended without the signal. */
  readonly stopReason?: string;
}

/** Fields that only some events have. */
interface EventDetails {
  readonly status?: string;
  readonly waitingFor?: string;
  readonly callId?: string;
  readonly dimension?: string;
  readonly logMessage?: string;
  readonly after?: string[];
}

/** An event that is not stored yet. */
export interface WorkerEvent {
  readonly name: EventName;
  readonly eventId: string;
  /** The encoded HookEvent. */
  readonly payload: Uint8Array;
  readonly agent: EventAgent;
  readonly step: number;
  readonly traceparent: string;
  /** Counts the event in a metric. */
  readonly counted?: (trx: WorkerTransaction) => void;
}

/**
 * Emits the worker's hook events, each once and in the transaction of the change that it reports
 * (HK-1, HK-2).
 */
export interface WorkerEvents {
  /** Stores an event in the outbox. */
  append(trx: WorkerTransaction, event: WorkerEvent, at: Date): Promise<void>;
  /**
   * A think-act cycle started. `waitsFor` is the signal that the cycle waits for first, or empty; `lastStep` is the
   * number of the previous cycle, or zero.
   */
  stepStarted(
    scope: StepScope,
    start: { readonly waitsFor: string; readonly lastStep: number },
    at: Date,
  ): WorkerEvent;
  /**
   * A think-act cycle ended. `status` is the verdict on its proposal or a stop reason; `after` contains the ids of the
   * TOOL_END events of its calls and the result of {@link earlierInStep}.
   */
  stepEnded(
    scope: StepScope,
    end: { readonly status: string; readonly after: readonly string[] },
    at: Date,
  ): WorkerEvent;
  /** A flow started. */
  flowStarted(agent: EventAgent, at: Date): WorkerEvent;
  /** A flow ended; `status` is `ok` or a stop reason, `lastStep` is the number of its last step. */
  flowEnded(agent: EventAgent, status: string, lastStep: number, at: Date): WorkerEvent;
  /** A lease started; metric only. */
  leaseBegan(isResumed: boolean): void;
  /** A lease ended; metric only. */
  leaseEnded(outcome: string): void;
  /** A guardrail tripped. */
  guardrailTripped(scope: TripScope, at: Date): WorkerEvent;
  /**
   * An agent no longer waits for a signal; the wait becomes a span of the run, unless another component records it
   * (SYS-1).
   */
  waitEnded(trx: WorkerTransaction, wait: EndedWait): void;
  /** An agent wrote a log entry; its content stays in the journal. */
  logged(scope: LogScope, at: Date): WorkerEvent;
}

/** Returns the id of an event of an agent. @param fact the call_id, or another text that makes the id unique */
export function eventIdOf(
  agent: Pick<EventAgent, 'run_id' | 'instance'>,
  fact: string,
  name: EventName | 'TOOL_END',
): string {
  return derivedId('evt', agent.run_id, agent.instance, fact, name);
}

/** Decodes an event that a worker encoded; returns undefined for an event of another emitter. */
export function readWorkerEvent(payload: Uint8Array): WorkerEvent | undefined {
  const event = fromBinary(HookEventSchema, payload);
  const { emitter, tenant, runId: run_id, sessionId: session_id, step, traceparent } = event;
  const type = NAMES.find((each) => HookEventType[each] === event.type);
  if (type === undefined || emitter !== 'agent-worker' || event.agent === undefined)
    return undefined;
  const { name, instance } = event.agent;
  const agent = { tenant, run_id, session_id, name, instance, traceparent };
  return { name: type, eventId: event.eventId, payload, agent, step, traceparent };
}

/** Maximum number of earlier events that an event lists in `after`. */
const MAX_EARLIER = 64;

/**
 * Returns the ids of the LLM_END and GUARDRAIL_TRIP events of a step in `events`, the events that the supervisor has
 * not acknowledged yet. Later events of the step list these ids in `after`, because the events of a step without a
 * review have several emitters and the bus may deliver them in any order (HK-1).
 */
export function earlierInStep(events: readonly CarriedEvent[], ofStep: number): string[] {
  const { LLM_END, GUARDRAIL_TRIP } = HookEventType;
  const earlier = events.flatMap(({ event }) => {
    const { type, step, eventId } = fromBinary(HookEventSchema, Buffer.from(event, 'base64'));
    const isNamed = type === LLM_END || type === GUARDRAIL_TRIP;
    return isNamed && step === ofStep ? [eventId] : [];
  });
  return earlier.slice(-MAX_EARLIER);
}

/** Creates the worker's events. */
export function createWorkerEvents(telemetry: Telemetry): WorkerEvents {
  const { metrics } = telemetry;
  const count = countAtCommit(telemetry);
  return {
    async append(trx, { name, eventId, payload, agent, step, traceparent, counted }, at) {
      const { tenant, run_id: runId, instance } = agent;
      const subject = hookSubject({ tenant, runId, agent: instance, event: name });
      await appendOutbox(trx, { eventId, subject, payload, headers: { traceparent } }, at);
      counted?.(trx);
      const ids = { run_id: runId, agent: instance, step, [ATTR_WRIT_EVENT_ID]: eventId };
      afterCommit(trx, () => telemetry.log.info({ tenant, ...ids }, name));
    },
    stepStarted: (scope, { waitsFor: waitingFor, lastStep }, at) => {
      const after = endOfStep(scope.agent, lastStep);
      return workerEvent(scope, 'STEP_START', { waitingFor, after }, at);
    },
    stepEnded: (scope, { status, after }, at) => {
      const labels = { 'writ.tenant': scope.agent.tenant, 'writ.status': status };
      const event = workerEvent(scope, 'STEP_END', { status, after: [...after] }, at);
      return { ...event, counted: (trx) => count(trx, 'steps', labels) };
    },
    leaseBegan: (isResumed) => metrics.count('leases', { 'writ.resumed': String(isResumed) }),
    leaseEnded: (outcome) => {
      const [kind = ''] = outcome.split(':', 1);
      metrics.count('leaseEnds', { 'writ.outcome': kind });
    },
    flowStarted: (agent, at) => workerEvent({ agent, step: 0 }, 'FLOW_START', {}, at),
    flowEnded: (agent, status, lastStep, at) => {
      const after = endOfStep(agent, lastStep);
      return workerEvent({ agent, step: 0 }, 'FLOW_END', { status, after }, at);
    },
    guardrailTripped: ({ callId, guardrail, after, ...scope }, at) => {
      const details = { callId, dimension: guardrail, after };
      const event = workerEvent(scope, 'GUARDRAIL_TRIP', details, at);
      return {
        ...event,
        counted: (trx) => count(trx, 'guardrails', { 'writ.guardrail': guardrail }),
      };
    },
    waitEnded: (trx, wait) => traceWait(telemetry, trx, wait),
    logged: ({ callId, logMessage, after, ...scope }, at) =>
      workerEvent(scope, 'LOG_ENTRY', { callId, logMessage, after }, at),
  };
}

/**
 * Records a wait as a span of the run. The attributes name the awaited signal and its sender, without content (SYS-1).
 */
function traceWait(
  { traces, tracer }: Telemetry,
  trx: WorkerTransaction,
  { agent, name, since, at, sender, stopReason }: EndedWait,
): void {
  const kind = waitKindOf(name);
  if (!traces || kind === undefined) return;
  const attributes = {
    [ATTR_WRIT_TENANT]: agent.tenant,
    [ATTR_WRIT_RUN_ID]: agent.run_id,
    [ATTR_WRIT_AGENT]: agent.instance,
    [ATTR_WRIT_WAITING_FOR]: name,
    ...(sender && { [ATTR_WRIT_SENDER]: sender }),
    ...(stopReason !== undefined && { [ATTR_WRIT_STOP_REASON]: stopReason }),
  };
  const parent = contextFromTraceparent(agent.traceparent);
  const options = { startTime: since, attributes };
  // The clocks of two replicas may differ.
  const end = new Date(Math.max(since.getTime(), at.getTime()));
  afterCommit(trx, () => tracer.startSpan(`wait_for_${kind}`, options, parent).end(end));
}

function endOfStep(agent: EventAgent, step: number): string[] {
  return step === 0 ? [] : [eventIdOf(agent, `step-${step}`, 'STEP_END')];
}

function workerEvent(
  { agent, step }: StepScope,
  name: EventName,
  details: EventDetails,
  at: Date,
): WorkerEvent {
  const { tenant, run_id: runId, instance } = agent;
  const traceparent = traceparentOf() ?? agent.traceparent;
  const eventId = eventIdOf(agent, details.callId ?? (step === 0 ? 'flow' : `step-${step}`), name);
  const event = create(HookEventSchema, {
    eventId,
    type: HookEventType[name],
    emitter: 'agent-worker',
    eventTime: timestampFromDate(at),
    tenant,
    runId,
    sessionId: agent.session_id,
    agent: { name: agent.name, instance },
    step,
    traceparent,
    ...details,
  });
  const payload = toBinary(HookEventSchema, event);
  return { name, eventId, payload, agent, step, traceparent };
}

/** Registers the metric that counts the agents that have not ended, by state. */
export function observeAgents({ metrics }: Telemetry, { db }: WorkerStore): void {
  metrics.observe('agents', async () => {
    const rows = await db
      .selectFrom('agents')
      .where('ended_at', 'is', null)
      .groupBy('state')
      .select((query) => ['state', query.fn.countAll().as('count')])
      .execute();
    return rows.map(({ state, count }) => ({
      value: Number(count),
      labels: { 'writ.state': state.toLowerCase() },
    }));
  });
}
