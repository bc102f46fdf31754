import { setTimeout as sleep } from 'node:timers/promises';
import { type ChannelOptions, connectivityState, experimental } from '@grpc/grpc-js';
import { context, ROOT_CONTEXT } from '@writ/telemetry';
import type { ReplicaWatch, Reply, Standing } from './replica-watch.ts';

/** Between an answer and the next question, ms. */
const ASK_EVERY_MS = 1_000;
/** How long a connection may take before calls wait for it no more; then another one is tried. */
const PATIENCE_MS = 5_000;
const MAX_PATIENCE_MS = 30_000;

/** What a replica needs of the balancer. */
interface ReplicaParts {
  readonly endpoint: experimental.Endpoint;
  readonly helper: experimental.ChannelControlHelper;
  readonly options: ChannelOptions;
  readonly note: string;
  readonly watch: ReplicaWatch;
  /** It stands otherwise than before. */
  readonly changed: () => void;
}

/**
 * One replica of a service: the connection to it, and what it says of itself. It counts only once it
 * has answered, so that one that hangs, while its kernel still takes connections, gets no calls.
 */
export class Replica {
  readonly address: string;
  readonly #parts: ReplicaParts;
  #leaf: experimental.LeafLoadBalancer | undefined;
  #link = connectivityState.IDLE;
  #picker: experimental.Picker = new experimental.UnavailablePicker();
  #reply: Exclude<Reply, 'unsure'> | undefined;
  #problem = '';
  #isLost = false;
  /** Whether it served before, and whether it was told that it does no more. */
  #told: 'nothing' | 'in' | 'out' = 'nothing';
  /** Tells what is heard of a former connection from what is heard of this one. */
  #connections = 0;
  #asking = 0;
  #patienceMs = PATIENCE_MS;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: ReplicaParts) {
    this.#parts = parts;
    this.address = experimental.endpointToString(parts.endpoint).replace(/^\[(.*)\]$/, '$1');
  }

  get standing(): Standing {
    if (this.#link === connectivityState.READY) return this.#reply ?? 'connecting';
    return this.#isLost ? 'lost' : 'connecting';
  }

  /** Why it is not called, for the sentence of a failed call. */
  get problem(): string {
    const { standing } = this;
    if (standing === 'not_serving') return `${this.address} says that it is not serving`;
    return `${this.address} ${this.#problem || 'does not answer'}`;
  }

  /** Begins to connect; from then on it never stops trying. */
  connect(): void {
    this.#connections += 1;
    const life = this.#connections;
    const { endpoint, helper, options, note } = this.#parts;
    const heard = experimental.createChildChannelControlHelper(helper, {
      updateState: (link, picker, error) => {
        if (life === this.#connections) this.#linked(link, picker, error);
      },
    });
    // Another option makes another connection: without it the one that hangs would be found again.
    const own = { ...options, 'writ.connection': life };
    this.#leaf?.destroy();
    this.#leaf = new experimental.LeafLoadBalancer(endpoint, heard, own, note);
    this.#waitForLink();
    this.#leaf.startConnecting();
  }

  /** Picks its connection, whatever it says of itself. */
  pick(args: experimental.PickArgs): experimental.PickResult {
    return this.#picker.pick(args);
  }

  destroy(): void {
    this.#connections += 1;
    this.#asking += 1;
    clearTimeout(this.#timer);
    this.#leaf?.destroy();
  }

  #linked(link: connectivityState, picker: experimental.Picker, error: string | null): void {
    const before = this.#link;
    this.#link = link;
    this.#picker = picker;
    if (link === connectivityState.READY) {
      clearTimeout(this.#timer);
      this.#isLost = false;
      this.#problem = '';
      if (before !== connectivityState.READY) this.#begin();
    } else {
      this.#asking += 1;
      if (link === connectivityState.TRANSIENT_FAILURE) {
        this.#isLost = true;
        this.#problem = causeOf(error ?? '');
      }
      if (before === connectivityState.READY) this.#parts.helper.requestReresolution();
      this.#waitForLink();
      if (link === connectivityState.IDLE) this.#leaf?.exitIdle();
    }
    this.#changed();
  }

  /** The connection is there: now it must answer. */
  #begin(): void {
    this.#reply = undefined;
    if (this.#parts.watch.asks) context.with(ROOT_CONTEXT, () => void this.#ask());
    else this.#heard('serving');
  }

  async #ask(): Promise<void> {
    this.#asking += 1;
    const life = this.#asking;
    for (;;) {
      const reply = await this.#parts.watch.ask(this.address);
      if (life !== this.#asking) return;
      if (reply !== 'unsure') this.#heard(reply);
      await sleep(ASK_EVERY_MS, undefined, { ref: false });
      if (life !== this.#asking) return;
    }
  }

  #heard(reply: Exclude<Reply, 'unsure'>): void {
    if (reply !== 'silent') this.#patienceMs = PATIENCE_MS;
    if (reply === this.#reply) return;
    this.#reply = reply;
    this.#changed();
  }

  /** A connection that neither comes about nor fails is given up for another one. */
  #waitForLink(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isLost = true;
      this.#problem = '';
      this.#patienceMs = Math.min(2 * this.#patienceMs, MAX_PATIENCE_MS);
      this.connect();
      this.#changed();
    }, this.#patienceMs).unref();
  }

  #changed(): void {
    const { standing } = this;
    if (standing === 'serving') {
      if (this.#told === 'out') this.#parts.watch.tell(this.address, standing);
      this.#told = 'in';
    } else if (standing !== 'connecting' && this.#told === 'in') {
      this.#parts.watch.tell(this.address, standing);
      this.#told = 'out';
    }
    this.#parts.changed();
  }
}

/** What grpc-js says of a failed connection, without what it wraps around. */
function causeOf(error: string): string {
  const [, cause = error] = /Last error: (.*?)\.? Resolution note/.exec(error) ?? [];
  const plain = cause.replace(/^Error: /, '').replace(/ \(\d{4}-\d\d-\d\dT[^)]*\)$/, '');
  return plain === '' ? '' : `cannot be reached (${plain})`;
}
