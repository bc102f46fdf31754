import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Bus, progressSubject } from '@writ/bus';
import { AgentActivity, LiveProgressSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { isTerminal, type RunState } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { DeltaListener } from '../domain/calls/model-call.ts';
import { DeltaText } from './progress-text.ts';
import type { Session } from './session.ts';

/** What telling of progress takes. */
export interface ProgressParts {
  readonly bus: Pick<Bus, 'publishLive'>;
  readonly log: Logger;
}

/**
 * Shows whoever looks right now what one agent does (SUP-1). Nothing depends on it, waits for it or
 * keeps it; of model text only where the manifest says that it may be seen before it is reviewed.
 */
export class AgentProgress {
  readonly #parts: ProgressParts;
  readonly #session: Session;
  readonly #subject: string;
  #step: number;
  #told = 0;

  constructor(session: Session, parts: ProgressParts) {
    this.#parts = parts;
    this.#session = session;
    const { tenant, runId, instance } = session.lease;
    this.#step = session.row.step_started;
    this.#subject = progressSubject({ tenant, runId, agent: instance });
  }

  /** The agent is in this step from now on; told with what it does there. */
  entered(step: number): void {
    this.#step = step;
  }

  /** Tells what the agent does from now on. */
  stands(state: RunState): void {
    this.#tell({ step: this.#step, activity: activityOf(state) });
  }

  /** Who hears what the model says during a call; undefined where nobody may. */
  listener(callId: string): DeltaListener | undefined {
    if (!this.#session.manifest.unreviewedDeltas) return undefined;
    const step = this.#step;
    return new DeltaText((piece) => this.#tell({ step, callId, unreviewed: true, ...piece }));
  }

  #tell(progress: MessageInitShape<typeof LiveProgressSchema>): void {
    this.#told += 1;
    const eventId = `live-${this.#session.lease.epoch}-${this.#told}`;
    try {
      this.#parts.bus.publishLive({
        eventId,
        subject: this.#subject,
        payload: toBinary(LiveProgressSchema, create(LiveProgressSchema, progress)),
        headers: {},
      });
    } catch (error) {
      this.#parts.log.debug({ subject: this.#subject, event_id: eventId, err: error }, 'not shown');
    }
  }
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
