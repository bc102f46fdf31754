import { join } from 'node:path';
import type { Bus } from '@writ/bus';
import {
  assertRows,
  createTrust,
  createVerifier,
  DEFAULT_CLOCK_LEEWAY_MS,
  internalGate,
  openSigner,
  type ServiceName,
  type Signer,
  type Verifier,
} from '@writ/identity';
import { type Clock, PeerClocks, systemClock } from '@writ/kernel';
import { createRpcServer, type Route, type RpcLimits, type RpcServer } from '@writ/rpc';
import {
  type CommitObserver,
  createOutboxRelay,
  type OutboxDatabase,
  type OutboxRelay,
  type Store,
} from '@writ/store';
import type { Telemetry } from '@writ/telemetry';
import { ClockMonitor } from './clock-monitor.ts';
import { outboxPublisher } from './events/outbox-relay-options.ts';
import { knownAddresses } from './known-addresses.ts';
import type { ResourceStack } from './resource-stack.ts';
import type { ServiceParts } from './service.ts';
import type { OpenOptions, ServiceConfig, ServiceHost } from './service-host.ts';
import { variableName } from './settings/names.ts';
import { MarkKeeper } from './stores/mark-keeper.ts';
import { StoreAvailability } from './stores/store-availability.ts';
import { storeLabel } from './stores/store-label.ts';
import { observeCommits, observeOutbox } from './stores/store-metrics.ts';

/** Opens the resources that every service needs: keys, store with outbox, and listener. */
export class Host<C extends ServiceConfig, P extends ServiceParts> implements ServiceHost<C, P> {
  readonly config: C;
  readonly parts: P;
  readonly clock: Clock;
  readonly signer: Signer;
  readonly verifier: Verifier;
  readonly peerClocks: PeerClocks;
  readonly isClockSkewed = () => this.#clockMonitor?.isSkewed === true;
  readonly sharedNow = () => {
    const now = this.clock.now();
    return this.isClockSkewed() ? new Date(now.getTime() - this.peerClocks.ownLeadMs()) : now;
  };
  readonly isClockConfirmed = () => this.#clockMonitor?.isConfirmed === true;
  readonly relay: ServiceHost<C, P>['relay'] = {
    wake: () => this.outbox?.wake(),
    flushSoon: () => this.outbox?.flushSoon(),
  };
  outbox: OutboxRelay | undefined;
  #storeMonitor: StoreAvailability | undefined;
  #clockMonitor: ClockMonitor | undefined;
  #keeper: Pick<MarkKeeper<unknown>, 'start'> | undefined;
  readonly #name: ServiceName;
  readonly #resources: ResourceStack;
  #store: Pick<Store<never>, 'commits' | 'checkAvailable'> | undefined;

  private constructor(
    name: ServiceName,
    config: C,
    parts: P,
    opened: Pick<ServiceHost<C>, 'clock' | 'signer' | 'verifier' | 'peerClocks'> & {
      readonly resources: ResourceStack;
    },
  ) {
    this.#name = name;
    this.config = config;
    this.parts = parts;
    this.clock = opened.clock;
    this.signer = opened.signer;
    this.verifier = opened.verifier;
    this.peerClocks = opened.peerClocks;
    this.#resources = opened.resources;
  }

  static async open<C extends ServiceConfig, P extends ServiceParts>(
    { name, trusts }: { readonly name: ServiceName; readonly trusts?: readonly ServiceName[] },
    config: C,
    parts: P,
    resources: ResourceStack,
  ): Promise<Host<C, P>> {
    const { telemetry, clock = systemClock, addressOf, workerPools, tls, loopback } = parts;
    const signer = await openSigner({
      service: name,
      keyDir: join(config.dataDir, 'keys'),
      clock,
      rotateEveryMs: config.keyRotationMs,
      onKeyProblem: (error) => {
        telemetry.log.error({ err: error }, 'signing keys not updated; using the previous ones');
      },
    });
    const addresses = () => knownAddresses(addressOf, trusts);
    const peerClocks = new PeerClocks(clock);
    const trust = createTrust({
      addresses,
      workerPools,
      telemetry,
      self: signer,
      clock,
      tls,
      loopback,
      peerClocks,
    });
    resources.defer(() => trust.close());
    const { clockLeewayMs: leewayMs } = config;
    const verifier = createVerifier({ trust, clock, leewayMs, peerClocks });
    return new Host(name, config, parts, { clock, signer, verifier, peerClocks, resources });
  }

  get telemetry(): Telemetry {
    return this.parts.telemetry;
  }

  get bus(): Bus {
    return this.parts.bus;
  }

  get commits(): number {
    return this.#store?.commits ?? 0;
  }

  async openStore<DB extends OutboxDatabase, S extends Store<DB>>(
    open: (observer: CommitObserver | undefined) => Promise<S & Store<DB>>,
    { onRecovery, ...options }: OpenOptions<DB> = {},
  ): Promise<S> {
    const { telemetry, bus, clock } = this;
    const store = await open(observeCommits(telemetry));
    this.defer(() => store.close());
    await this.#keep(store, onRecovery);
    observeOutbox(telemetry, store, clock);
    this.outbox = createOutboxRelay({
      store,
      clock,
      isClockConfirmed: this.isClockConfirmed,
      ...outboxPublisher(bus, telemetry),
      ...options,
    });
    this.#store = store;
    return store;
  }

  /** Creates the mark keeper of the store, if a marker is configured for its location. */
  async #keep<DB>(store: Store<DB>, onRecovery: OpenOptions<DB>['onRecovery']): Promise<void> {
    const { telemetry, clock } = this;
    const { store: location } = this.config;
    if (location?.marker === undefined) return;
    const { marker } = location;
    const service = this.#name;
    const label = storeLabel(location);
    const parts = { service, label, location: marker, log: telemetry.log, clock };
    const keeper = new MarkKeeper<DB>(store, parts);
    await keeper.open(onRecovery);
    this.defer(() => keeper.stop());
    this.#keeper = keeper;
  }

  /**
   * Calls `setServing` now and whenever a monitored state changes: with false while the database is unavailable,
   * including a SQLite file after a disk failure (SYS-4), while the clock is skewed (BD-3), and after the database went
   * back in time (BD-4).
   */
  monitorHealth(setServing: (isServing: boolean) => void): void {
    const { telemetry, peerClocks, clock } = this;
    let isStoreAvailable = true;
    let isStoreBehind = false;
    const report = () => setServing(isStoreAvailable && !isStoreBehind && !this.isClockSkewed());
    const { clockLeewayMs: leewayMs = DEFAULT_CLOCK_LEEWAY_MS, clockAloneMs: aloneMs } =
      this.config;
    const monitored = { peerClocks, clock, leewayMs, aloneMs, telemetry, onChange: report };
    this.#clockMonitor = new ClockMonitor(monitored);
    this.#clockMonitor.start();
    this.#keeper?.start(() => {
      isStoreBehind = true;
      report();
    });
    report();
    if (this.#store === undefined) return;
    const onChange = (isAvailable: boolean): void => {
      isStoreAvailable = isAvailable;
      report();
    };
    this.#storeMonitor = new StoreAvailability({
      store: this.#store,
      log: telemetry.log,
      clock: this.clock,
      onChange,
    });
    this.#storeMonitor.start();
  }

  stopMonitors(): void {
    this.#storeMonitor?.stop();
    this.#clockMonitor?.stop();
  }

  async listen(
    routes: readonly Route[],
    {
      enforceSlotGrants = false,
      limits,
    }: { readonly enforceSlotGrants?: boolean; readonly limits?: RpcLimits } = {},
  ): Promise<RpcServer> {
    assertRows(routes);
    const { verifier, telemetry, clock, peerClocks } = this;
    const { tls, cleartext, loopback } = this.parts;
    const { host, port } = this.config;
    const service = this.#name;
    const server = await createRpcServer({
      host,
      port,
      portSetting: variableName(service, 'PORT'),
      tls: tls?.server,
      cleartext,
      loopback,
      routes,
      gate: internalGate({
        service,
        verifier,
        enforceSlotGrants,
        trustDomain: tls?.trustDomain,
        peerClocks,
      }),
      telemetry,
      clock,
      ...(limits && { limits }),
    });
    this.defer(() => server.close(0));
    return server;
  }

  defer(close: () => unknown): void {
    this.#resources.defer(async () => {
      await close();
    });
  }
}
