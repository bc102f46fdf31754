import { type BusMessage, progressAgent, progressOfRun, type Subscription } from '@writ/bus';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { isId, type RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import { findAgent } from '../../store/agent/agents.ts';
import { progressEvent, readProgress } from '../../wire/progress.ts';

/**
 * Maximum number of messages that are buffered for a watcher; if there are more, the oldest are dropped and counted.
 */
const CAPACITY = 128;
/** Longer messages are dropped. */
const MAX_BYTES = 32_768;

/** Values from the row of an agent. */
interface ShownAgent {
  readonly name: string;
  readonly instance: string;
  /** Whether its definition allows showing text before it is reviewed. */
  readonly mayShowText: boolean;
}

/**
 * Live progress of a run's agents for one watcher. The bus delivers the next message when the watcher has read the
 * previous one, so that a slow watcher loses messages and delays no other watcher. Nothing is stored.
 */
export class RunProgress {
  readonly #context: Pick<SupervisorContext, 'store'>;
  readonly #key: RunKey;
  readonly #onMessage: () => void;
  readonly #agents = new Map<string, ShownAgent>();
  readonly #subscription: Subscription;
  #next: RunEvent | undefined;
  #taken: () => void = () => undefined;
  #missed = 0;
  #isClosed = false;

  /** @param onMessage called when {@link take} has a message */
  constructor(
    context: Pick<SupervisorContext, 'store' | 'bus'>,
    key: RunKey,
    onMessage: () => void,
  ) {
    this.#context = context;
    this.#key = key;
    this.#onMessage = onMessage;
    this.#subscription = context.bus.subscribeLive({
      subject: progressOfRun(key),
      capacity: CAPACITY,
      handler: (message, missed) => this.#offer(message, missed),
    });
  }

  /** Removes and returns the next message; undefined when there is none. */
  take(): RunEvent | undefined {
    const event = this.#next;
    this.#next = undefined;
    this.#taken();
    return event;
  }

  /** Ends the subscription. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#taken();
    await this.#subscription.unsubscribe();
  }

  /**
   * Offers a message to the watcher. Resolves when the watcher has read the message, or at once if the message may not
   * be shown; until then, later messages stay in the queue of the subscription.
   */
  async #offer(message: BusMessage, missed: number): Promise<void> {
    this.#missed += missed;
    const event = await this.#read(message);
    if (event === undefined || this.#isClosed) return;
    this.#missed = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#taken = resolve;
    this.#next = event;
    this.#onMessage();
    await promise;
  }

  /**
   * Converts a message to an event; undefined if it may not be shown. The name of the agent and the permission to show
   * text are read from the rows, not from the worker's message.
   */
  async #read({ subject, payload }: BusMessage): Promise<RunEvent | undefined> {
    if (payload.byteLength > MAX_BYTES) return undefined;
    const agent = await this.#agent(progressAgent(subject));
    if (agent === undefined) return undefined;
    const { step, activity, textDelta, callId, attempt, textOffset } = readProgress(payload);
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
