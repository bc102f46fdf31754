import { setTimeout as sleep } from 'node:timers/promises';
import { type ChannelOptions, connectivityState, experimental } from '@grpc/grpc-js';
import { context, ROOT_CONTEXT } from '@writ/telemetry';
import { connectErrorCause } from '../grpc-js-internals.ts';
import type { ProbeResult, ReplicaState, ReplicaWatch } from './replica-health.ts';

/** Pause between two health checks, ms. */
const PROBE_INTERVAL_MS = 1_000;
/** Initial connect timeout, ms. It doubles each time it expires. */
const CONNECT_TIMEOUT_MS = 5_000;
const MAX_CONNECT_TIMEOUT_MS = 30_000;

/** Dependencies of a {@link Replica}. */
interface ReplicaParts {
  readonly endpoint: experimental.Endpoint;
  readonly helper: experimental.ChannelControlHelper;
  readonly options: ChannelOptions;
  readonly note: string;
  readonly watch: ReplicaWatch;
  /** Called when the state may have changed. */
  readonly changed: () => void;
}

/**
 * One replica of a service: its connection and health. If health checks are enabled, it receives no calls before the
 * first health response, because the operating system accepts connections even while the process is paused.
 */
export class Replica {
  readonly address: string;
  readonly #parts: ReplicaParts;
  #leaf: experimental.LeafLoadBalancer | undefined;
  #link = connectivityState.IDLE;
  #picker: experimental.Picker = new experimental.UnavailablePicker();
  #health: Exclude<ProbeResult, 'inconclusive'> | undefined;
  #problem = '';
  #isLost = false;
  /** The last reported state; a replica that never served is not reported. */
  #reported: 'never_served' | 'admitted' | 'ejected' = 'never_served';
  /** Number of the current connection; updates of earlier connections are ignored. */
  #connection = 0;
  /** Number of the current probe loop; earlier loops stop. */
  #probeLoop = 0;
  #connectTimeoutMs = CONNECT_TIMEOUT_MS;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: ReplicaParts) {
    this.#parts = parts;
    this.address = experimental.endpointToString(parts.endpoint).replace(/^\[(.*)\]$/, '$1');
  }

  get state(): ReplicaState {
    if (this.#link === connectivityState.READY) return this.#health ?? 'connecting';
    return this.#isLost ? 'lost' : 'connecting';
  }

  /** Why the replica receives no calls, for the message of a failed call. */
  get problem(): string {
    if (this.state === 'not_serving') return `${this.address} reports NOT_SERVING`;
    return `${this.address} ${this.#problem || 'does not respond'}`;
  }

  /** Starts to connect; reconnects until `destroy`. */
  connect(): void {
    this.#connection += 1;
    const connection = this.#connection;
    const { endpoint, helper, options, note } = this.#parts;
    const childHelper = experimental.createChildChannelControlHelper(helper, {
      updateState: (link, picker, error) => {
        if (connection === this.#connection) this.#linkChanged(link, picker, error);
      },
    });
    // A distinct option forces a new subchannel; otherwise grpc-js would reuse the unresponsive one.
    const ownOptions = { ...options, 'writ.connection': connection };
    this.#leaf?.destroy();
    this.#leaf = new experimental.LeafLoadBalancer(endpoint, childHelper, ownOptions, note);
    this.#startConnectTimer();
    this.#leaf.startConnecting();
  }

  /** Picks the connection of this replica whatever its health. */
  pick(args: experimental.PickArgs): experimental.PickResult {
    return this.#picker.pick(args);
  }

  destroy(): void {
    this.#connection += 1;
    this.#probeLoop += 1;
    clearTimeout(this.#timer);
    this.#leaf?.destroy();
  }

  #linkChanged(link: connectivityState, picker: experimental.Picker, error: string | null): void {
    const before = this.#link;
    this.#link = link;
    this.#picker = picker;
    if (link === connectivityState.READY) {
      clearTimeout(this.#timer);
      this.#isLost = false;
      this.#problem = '';
      if (before !== connectivityState.READY) this.#connected();
    } else {
      this.#probeLoop += 1;
      if (link === connectivityState.TRANSIENT_FAILURE) {
        this.#isLost = true;
        const cause = connectErrorCause(error ?? '');
        this.#problem = cause === '' ? '' : `cannot be reached (${cause})`;
      }
      if (before === connectivityState.READY) this.#parts.helper.requestReresolution();
      this.#startConnectTimer();
      if (link === connectivityState.IDLE) this.#leaf?.exitIdle();
    }
    this.#stateChanged();
  }

  #connected(): void {
    this.#health = undefined;
    if (this.#parts.watch.isEnabled) context.with(ROOT_CONTEXT, () => void this.#probe());
    else this.#setHealth('serving');
  }

  async #probe(): Promise<void> {
    this.#probeLoop += 1;
    const loop = this.#probeLoop;
    for (;;) {
      const result = await this.#parts.watch.probe(this.address);
      if (loop !== this.#probeLoop) return;
      if (result !== 'inconclusive') this.#setHealth(result);
      await sleep(PROBE_INTERVAL_MS, undefined, { ref: false });
      if (loop !== this.#probeLoop) return;
    }
  }

  #setHealth(health: Exclude<ProbeResult, 'inconclusive'>): void {
    if (health !== 'silent') this.#connectTimeoutMs = CONNECT_TIMEOUT_MS;
    if (health === this.#health) return;
    this.#health = health;
    this.#stateChanged();
  }

  /** Replaces a connection that neither succeeds nor fails within the timeout. */
  #startConnectTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isLost = true;
      this.#problem = '';
      this.#connectTimeoutMs = Math.min(2 * this.#connectTimeoutMs, MAX_CONNECT_TIMEOUT_MS);
      this.connect();
      this.#stateChanged();
    }, this.#connectTimeoutMs).unref();
  }

  #stateChanged(): void {
    const { state } = this;
    if (state === 'serving') {
      if (this.#reported === 'ejected') this.#parts.watch.report(this.address, state);
      this.#reported = 'admitted';
    } else if (state !== 'connecting' && this.#reported === 'admitted') {
      this.#parts.watch.report(this.address, state);
      this.#reported = 'ejected';
    }
    this.#parts.changed();
  }
}
