import { type ChannelOptions, connectivityState, experimental } from '@grpc/grpc-js';
import { unsentMetadata } from '../errors/unsent-call.ts';
import { Replica } from './replica.ts';
import {
  REPLICA_KEY,
  type ReplicaState,
  type ReplicaWatch,
  WATCH_OPTION,
} from './replica-health.ts';

const POLICY = 'writ_replicas';

/** Returns the service config of a channel that balances round robin across healthy replicas. */
export function replicaPolicy(): string {
  if (!experimental.isLoadBalancerNameRegistered(POLICY)) {
    experimental.registerLoadBalancerType(POLICY, ReplicaBalancer, ReplicaPolicy);
  }
  return JSON.stringify({ loadBalancingConfig: [{ [POLICY]: {} }] });
}

class ReplicaPolicy implements experimental.TypedLoadBalancingConfig {
  static createFromJson(): ReplicaPolicy {
    return new ReplicaPolicy();
  }

  getLoadBalancerName(): string {
    return POLICY;
  }

  toJsonObject(): object {
    return { [POLICY]: {} };
  }
}

/**
 * Balances calls round robin across the healthy replicas (SYS-5). A replica that is disconnected,
 * reports NOT_SERVING, or does not respond is ejected. Without a healthy replica, calls wait for
 * connections in progress, then use replicas with late health responses, which may be overloaded, and
 * otherwise fail at once (SYS-4).
 */
class ReplicaBalancer implements experimental.LoadBalancer {
  readonly #helper: experimental.ChannelControlHelper;
  readonly #replicas = new Map<string, Replica>();
  #turn = Math.floor(Math.random() * 1_000);
  #isUpdating = false;

  constructor(helper: experimental.ChannelControlHelper) {
    this.#helper = helper;
  }

  updateAddressList(
    resolved: Parameters<experimental.LoadBalancer['updateAddressList']>[0],
    config: experimental.TypedLoadBalancingConfig,
    options: ChannelOptions,
    note: string,
  ): boolean {
    if (!(config instanceof ReplicaPolicy)) return false;
    if (!resolved.ok) {
      // A lookup that returns no address does not eject known replicas.
      if (this.#replicas.size === 0) this.#fail(resolved.error.details);
      return true;
    }
    const endpoints = new Map(
      resolved.value.map((endpoint) => [experimental.endpointToString(endpoint), endpoint]),
    );
    const watch = options[WATCH_OPTION] as ReplicaWatch;
    this.#isUpdating = true;
    for (const [name, replica] of this.#replicas) {
      if (endpoints.has(name)) continue;
      this.#replicas.delete(name);
      replica.destroy();
    }
    for (const [name, endpoint] of endpoints) {
      if (this.#replicas.has(name)) continue;
      const changed = (): void => this.#update();
      const replica = new Replica({
        endpoint,
        helper: this.#helper,
        options,
        note,
        watch,
        changed,
      });
      this.#replicas.set(name, replica);
      replica.connect();
    }
    this.#isUpdating = false;
    this.#update();
    return true;
  }

  exitIdle(): void {
    // The balancer is never idle: it keeps a connection to every replica.
  }

  resetBackoff(): void {
    // The connections have their own back-off.
  }

  destroy(): void {
    for (const replica of this.#replicas.values()) replica.destroy();
    this.#replicas.clear();
  }

  getTypeName(): string {
    return POLICY;
  }

  #update(): void {
    if (this.#isUpdating) return;
    const replicas = [...this.#replicas.values()];
    const inState = (state: ReplicaState): Replica[] =>
      replicas.filter((replica) => replica.state === state);
    const serving = inState('serving');
    const silent = inState('silent');
    if (serving.length > 0) this.#roundRobin(serving);
    else if (inState('connecting').length > 0) this.#queue();
    else if (silent.length > 0) this.#roundRobin(silent);
    else {
      const problems = replicas.map(({ problem }) => problem).join('; ');
      this.#fail(`no replica available: ${problems}.`);
    }
  }

  #roundRobin(replicas: readonly Replica[]): void {
    const next = (args: experimental.PickArgs): experimental.PickResult => {
      this.#turn = (this.#turn + 1) % replicas.length;
      return (replicas[this.#turn] ?? new experimental.UnavailablePicker()).pick(args);
    };
    this.#publish(connectivityState.READY, { pick: next }, null);
  }

  #queue(): void {
    this.#publish(connectivityState.CONNECTING, new experimental.QueuePicker(this), null);
  }

  #fail(details: string): void {
    const picker = new experimental.UnavailablePicker({ details, metadata: unsentMetadata() });
    this.#publish(connectivityState.TRANSIENT_FAILURE, picker, details);
  }

  /** Publishes `picker` to the channel; calls addressed to one replica bypass it. */
  #publish(state: connectivityState, picker: experimental.Picker, problem: string | null): void {
    const pick = (args: experimental.PickArgs): experimental.PickResult => {
      const [name] = args.metadata.get(REPLICA_KEY);
      if (name === undefined) return picker.pick(args);
      args.metadata.remove(REPLICA_KEY);
      const replica = [...this.#replicas.values()].find(({ address }) => address === name);
      return (replica ?? new experimental.UnavailablePicker()).pick(args);
    };
    this.#helper.updateState(state, { pick }, problem);
  }
}
