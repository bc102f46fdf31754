import { create, toBinary } from '@bufbuild/protobuf';
import { type Bus, progressSubject } from '@writ/bus';
import { AgentActivity, LiveProgressSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { isTerminal, type RunState } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { TextPiece } from '../domain/calls/model-call.ts';
import type { LeasedAgent } from '../store/leases.ts';

/** A live update of an agent. */
export interface ProgressUpdate {
  /** The current or latest step. */
  readonly step: number;
  /** The new state. */
  readonly state?: RunState;
  /** New text of the model. */
  readonly text?: TextPiece & { readonly callId: string };
}

/** Publishes live progress of runs, whether or not a client watches. */
export interface ProgressPublisher {
  /** Publishes an update. Never blocks and never fails; `number` makes the event id unique. */
  show(agent: LeasedAgent, number: number, update: ProgressUpdate): void;
}

/** Creates a publisher that uses the bus without durability (SUP-1). */
export function createProgressPublisher(
  bus: Pick<Bus, 'publishLive'>,
  log: Logger,
): ProgressPublisher {
  return {
    show({ tenant, runId, instance, epoch }, number, { step, state, text }) {
      const eventId = `live-${epoch}-${number}`;
      const progress = create(LiveProgressSchema, {
        step,
        ...(state !== undefined && { activity: activityOf(state) }),
        ...(text !== undefined && { ...text, unreviewed: true }),
      });
      try {
        bus.publishLive({
          eventId,
          subject: progressSubject({ tenant, runId, agent: instance }),
          payload: toBinary(LiveProgressSchema, progress),
          headers: {},
        });
      } catch (error) {
        const ids = { tenant, run_id: runId, agent: instance, event_id: eventId };
        log.debug({ ...ids, err: error }, 'failed to publish progress');
      }
    },
  };
}

function activityOf(state: RunState): AgentActivity {
  if (isTerminal(state)) return AgentActivity.ENDED;
  switch (state) {
    case 'WAITING_FOR_TOOL':
    case 'WAITING_FOR_INPUT':
    case 'SUSPENDED':
    case 'PARKED':
      return AgentActivity[state];
    default:
      return AgentActivity.RUNNING;
  }
}
