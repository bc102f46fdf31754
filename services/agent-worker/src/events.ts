import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { hookSubject } from '@writ/bus';
import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { derivedId } from '@writ/kernel';
import { countAtCommit } from '@writ/service';
import { afterCommit, appendOutbox } from '@writ/store';
import { ATTR_WRIT_EVENT_ID, type Telemetry, traceparentOf } from '@writ/telemetry';
import type { AgentRow } from './store/agents.ts';
import type { WorkerStore, WorkerTransaction } from './store/worker-store.ts';

type EventName =
  | 'STEP_START'
  | 'STEP_END'
  | 'FLOW_START'
  | 'FLOW_END'
  | 'GUARDRAIL_TRIP'
  | 'LOG_ENTRY';

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
  readonly guardrail: string;
}

/** A log entry of an agent. */
interface LogScope extends StepScope {
  readonly callId: string;
  /** Its name, without content. */
  readonly logMessage: string;
}

/** Fields that only some events have. */
interface EventDetails {
  readonly status?: string;
  readonly waitingFor?: string;
  readonly callId?: string;
  readonly dimension?: string;
  readonly logMessage?: string;
}

/**
 * Emits the worker's hook events, each once and in the transaction of the change that it reports
 * (HK-1, HK-2).
 */
export interface WorkerEvents {
  /**
   * A think-act cycle started; `waitsFor` names the signal that it waits for first, empty for none.
   */
  stepStarted(trx: WorkerTransaction, scope: StepScope, waitsFor: string, at: Date): Promise<void>;
  /** A think-act cycle ended; `status` is the verdict on its proposal or a stop reason. */
  stepEnded(trx: WorkerTransaction, scope: StepScope, status: string, at: Date): Promise<void>;
  /** A flow started. */
  flowStarted(trx: WorkerTransaction, agent: EventAgent, at: Date): Promise<void>;
  /** A flow ended, with `ok` or a stop reason. */
  flowEnded(trx: WorkerTransaction, agent: EventAgent, status: string, at: Date): Promise<void>;
  /** A lease started; metric only. */
  leaseBegan(isResumed: boolean): void;
  /** A lease ended; metric only. */
  leaseEnded(outcome: string): void;
  /** A guardrail tripped. */
  guardrailTripped(trx: WorkerTransaction, scope: TripScope, at: Date): Promise<void>;
  /** An agent wrote a log entry; its content stays in the journal. */
  logged(trx: WorkerTransaction, scope: LogScope, at: Date): Promise<void>;
}

/** Creates the worker's events. */
export function createWorkerEvents(telemetry: Telemetry): WorkerEvents {
  const emit = async (
    trx: WorkerTransaction,
    { agent, step }: StepScope,
    name: EventName,
    details: EventDetails,
    at: Date,
  ): Promise<void> => {
    const { tenant, run_id: runId, instance } = agent;
    const traceparent = traceparentOf() ?? agent.traceparent;
    const fact = details.callId ?? (step === 0 ? 'flow' : `step-${step}`);
    const eventId = derivedId('evt', runId, instance, fact, name);
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
    await appendOutbox(
      trx,
      {
        eventId,
        subject: hookSubject({ tenant, runId, agent: instance, event: name }),
        payload: toBinary(HookEventSchema, event),
        headers: { traceparent },
      },
      at,
    );
    const fields = { tenant, run_id: runId, agent: instance, step, [ATTR_WRIT_EVENT_ID]: eventId };
    afterCommit(trx, () => telemetry.log.info(fields, name));
  };
  const { metrics } = telemetry;
  const count = countAtCommit(telemetry);
  return {
    stepStarted: (trx, scope, waitingFor, at) => emit(trx, scope, 'STEP_START', { waitingFor }, at),
    stepEnded: (trx, scope, status, at) => {
      count(trx, 'steps', { 'writ.tenant': scope.agent.tenant, 'writ.status': status });
      return emit(trx, scope, 'STEP_END', { status }, at);
    },
    leaseBegan: (isResumed) => metrics.count('leases', { 'writ.resumed': String(isResumed) }),
    leaseEnded: (outcome) => {
      const [kind = ''] = outcome.split(':', 1);
      metrics.count('leaseEnds', { 'writ.outcome': kind });
    },
    flowStarted: (trx, agent, at) => emit(trx, { agent, step: 0 }, 'FLOW_START', {}, at),
    flowEnded: (trx, agent, status, at) =>
      emit(trx, { agent, step: 0 }, 'FLOW_END', { status }, at),
    guardrailTripped: (trx, { callId, guardrail, ...scope }, at) => {
      count(trx, 'guardrails', { 'writ.guardrail': guardrail });
      return emit(trx, scope, 'GUARDRAIL_TRIP', { callId, dimension: guardrail }, at);
    },
    logged: (trx, { callId, logMessage, ...scope }, at) =>
      emit(trx, scope, 'LOG_ENTRY', { callId, logMessage }, at),
  };
}

/** Registers the metric of agents that have not ended, by state. */
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
