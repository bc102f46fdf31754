import { create, toBinary } from '@bufbuild/protobuf';
import { type Bus, progressSubject } from '@writ/bus';
import { AgentActivity, LiveProgressSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { isTerminal, type RunState } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { TextPiece } from '../domain/calls/model-call.ts';
import type { LeasedAgent } from '../store/leases.ts';

/** What an agent does now. */
export interface ProgressUpdate {
  /** Step that it is in or was in last. */
  readonly step: number;
  /** What it came to. */
  readonly state?: RunState;
  /** What its model said. */
  readonly text?: TextPiece & { readonly callId: string };
}

/** Whoever looks at runs right now; there may be nobody. */
export interface ProgressPublisher {
  /** Shows what an agent does. Never waits and never fails; `number` tells its messages apart. */
  show(agent: LeasedAgent, number: number, news: ProgressUpdate): void;
}

/** Reaches watchers over the bus, not durably (SUP-1). */
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
        log.debug({ ...ids, err: error }, 'progress not shown');
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
