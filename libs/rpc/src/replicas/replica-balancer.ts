import { type ChannelOptions, connectivityState, experimental } from '@grpc/grpc-js';
import { Replica } from './replica.ts';
import { REPLICA_KEY, type ReplicaWatch, WATCH_OPTION } from './replica-watch.ts';

const POLICY = 'writ_replicas';

/** The service config of a channel that goes round the replicas which are well. */
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
 * Replicas share the load in turn, whatever a call is about: none knows more than another (SYS-5).
 * One that is gone, says that it does not serve, or does not answer is left out. Where none is well,
 * calls wait for connections that are just being made; then take one that is late with its answer,
 * for that may be the load; else fail at once (SYS-4).
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
    found: Parameters<experimental.LoadBalancer['updateAddressList']>[0],
    config: experimental.TypedLoadBalancingConfig,
    options: ChannelOptions,
    note: string,
  ): boolean {
    if (!(config instanceof ReplicaPolicy)) return false;
    if (!found.ok) {
      // Those that are known stay: a name service that is away takes nobody out.
      if (this.#replicas.size === 0) this.#fail(found.error.details);
      return true;
    }
    const endpoints = new Map(
      found.value.map((endpoint) => [experimental.endpointToString(endpoint), endpoint]),
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
    // It never rests: every replica is connected to all the time.
  }

  resetBackoff(): void {
    // The connections keep their own.
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
    const all = (standing: Replica['standing']): Replica[] =>
      replicas.filter((replica) => replica.standing === standing);
    const serving = all('serving');
    const silent = all('silent');
    if (serving.length > 0) this.#goRound(serving);
    else if (all('connecting').length > 0) this.#wait();
    else if (silent.length > 0) this.#goRound(silent);
    else {
      const problems = replicas.map(({ problem }) => problem).join('; ');
      // The tool gateway knows by the first words that nothing was sent.
      this.#fail(`no replica can be called: ${problems}.`);
    }
  }

  #goRound(replicas: readonly Replica[]): void {
    const next = (args: experimental.PickArgs): experimental.PickResult => {
      this.#turn = (this.#turn + 1) % replicas.length;
      return (replicas[this.#turn] ?? new experimental.UnavailablePicker()).pick(args);
    };
    this.#tell(connectivityState.READY, { pick: next }, null);
  }

  #wait(): void {
    this.#tell(connectivityState.CONNECTING, new experimental.QueuePicker(this), null);
  }

  #fail(details: string): void {
    const picker = new experimental.UnavailablePicker({ details });
    this.#tell(connectivityState.TRANSIENT_FAILURE, picker, details);
  }

  #tell(state: connectivityState, picker: experimental.Picker, problem: string | null): void {
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
