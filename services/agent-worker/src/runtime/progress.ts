import type { RunState } from '@writ/kernel';
import type { DeltaListener } from '../domain/calls/model-call.ts';
import type { AgentNews, Watchers } from '../peers/watchers.ts';
import { DeltaText } from './progress-text.ts';
import type { Session } from './session.ts';

/**
 * Shows whoever looks right now what one agent does (SUP-1). Nothing depends on it, waits for it or
 * keeps it; of model text only where the manifest says that it may be seen before it is reviewed.
 */
export class AgentProgress {
  readonly #session: Session;
  readonly #watchers: Watchers;
  #step: number;
  #shown = 0;

  constructor(session: Session, watchers: Watchers) {
    this.#session = session;
    this.#watchers = watchers;
    this.#step = session.row.step_started;
  }

  /** The agent is in this step from now on; shown with what it does there. */
  entered(step: number): void {
    this.#step = step;
  }

  /** Shows what the agent does from now on. */
  stands(state: RunState): void {
    this.#show({ step: this.#step, state });
  }

  /** Who hears what the model says during a call; undefined where nobody may. */
  listener(callId: string): DeltaListener | undefined {
    if (!this.#session.manifest.unreviewedDeltas) return undefined;
    const step = this.#step;
    return new DeltaText((piece) => this.#show({ step, text: { ...piece, callId } }));
  }

  #show(news: AgentNews): void {
    this.#shown += 1;
    this.#watchers.show(this.#session.lease, this.#shown, news);
  }
}
