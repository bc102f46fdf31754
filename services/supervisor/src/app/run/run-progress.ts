import { type BusMessage, progressAgent, progressOfRun, type Subscription } from '@writ/bus';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { isId, type RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import { findAgent } from '../../store/agent/agents.ts';
import { progressEvent, readProgress } from '../../wire/progress.ts';

/** Messages that may wait for one watcher; of more, the oldest are dropped and counted. */
const CAPACITY = 128;
/** Longer messages are no progress. */
const MAX_BYTES = 32_768;

/** An agent as the supervisor knows it. */
interface ShownAgent {
  readonly name: string;
  readonly instance: string;
  /** Whether its definition lets text be shown before it is reviewed. */
  readonly mayShowText: boolean;
}

/**
 * What the agents of a run do, for one watcher: taken off the bus only as fast as the watcher takes it
 * from here, so that a slow one loses messages and holds up nobody. Nothing of it is kept.
 */
export class RunProgress {
  readonly #context: Pick<SupervisorContext, 'store'>;
  readonly #key: RunKey;
  readonly #onNews: () => void;
  readonly #agents = new Map<string, ShownAgent>();
  readonly #subscription: Subscription;
  #next: RunEvent | undefined;
  #taken: () => void = () => undefined;
  #missed = 0;
  #isClosed = false;

  /** @param onNews told when there is something to {@link take} */
  constructor(context: Pick<SupervisorContext, 'store' | 'bus'>, key: RunKey, onNews: () => void) {
    this.#context = context;
    this.#key = key;
    this.#onNews = onNews;
    this.#subscription = context.bus.subscribeLive({
      subject: progressOfRun(key),
      capacity: CAPACITY,
      handler: (message, missed) => this.#offer(message, missed),
    });
  }

  /** The next message, if there is one. */
  take(): RunEvent | undefined {
    const event = this.#next;
    this.#next = undefined;
    this.#taken();
    return event;
  }

  /** Looks no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#taken();
    await this.#subscription.unsubscribe();
  }

  /** Resolves when the watcher has taken the message, so that those behind it wait on the bus. */
  async #offer(message: BusMessage, missed: number): Promise<void> {
    this.#missed += missed;
    const event = await this.#read(message);
    if (event === undefined || this.#isClosed) return;
    this.#missed = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#taken = resolve;
    this.#next = event;
    this.#onNews();
    await promise;
  }

  /** A worker may say what it likes: who the agent is, and what may be shown of it, is in the rows. */
  async #read({ subject, payload }: BusMessage): Promise<RunEvent | undefined> {
    if (payload.byteLength > MAX_BYTES) return undefined;
    const agent = await this.#agent(progressAgent(subject));
    if (agent === undefined) return undefined;
    const said = readProgress(payload);
    const { step, activity, textDelta, callId, attempt, textOffset } = said;
    const isText = textDelta !== '';
    if (isText && !(agent.mayShowText && isId(callId))) return undefined;
    const { name, instance } = agent;
    return progressEvent(
      { name, instance },
      {
        step,
        activity,
        missed: this.#missed,
        ...(isText && { textDelta, unreviewed: true, callId, attempt, textOffset }),
      },
    );
  }

  async #agent(instance: string): Promise<ShownAgent | undefined> {
    const known = this.#agents.get(instance);
    if (known !== undefined) return known;
    const row = await findAgent(this.#context.store.db, { ...this.#key, instance });
    if (row === undefined) return undefined;
    const mayShowText = manifestFromJson(row.manifest).unreviewedDeltas;
    const agent = { name: row.name, instance, mayShowText };
    this.#agents.set(instance, agent);
    return agent;
  }
}
