import { freezeRecovered, watchFreezes } from '@writ/freeze';
import { defineService, type ServiceHost, Sweeper } from '@writ/service';
import { CallLedger } from './app/calls/call-ledger.ts';
import { ModelSlots } from './app/calls/model-call-slots.ts';
import { ModelCalls } from './app/calls/model-calls.ts';
import {
  expireReservations,
  settleCallsOfDeadReplicas,
  settleOrphanedCalls,
} from './app/calls/recover-calls.ts';
import type { ExecutionMeterConfig } from './config.ts';
import type { MeterContext } from './context.ts';
import { createMeterEvents } from './events.ts';
import { CatalogFile } from './providers/catalog/catalog-file.ts';
import { PriceList } from './providers/catalog/price-list.ts';
import { lazyProvider } from './providers/lazy-provider.ts';
import { meterRoutes } from './rpc/index.ts';
import { type MeterTransaction, openMeterStore } from './store/meter-store.ts';

/** The service that keeps the budgets of agents and calls the models. */
export type ExecutionMeterService = Awaited<ReturnType<typeof createExecutionMeter>>;

/** Long conversations with images need larger messages than other calls. */
const MESSAGE_LIMITS = { maxMessageBytes: 16 * 1024 * 1024 };

/**
 * Number of slices of each shared level on PostgreSQL: greater than the number of concurrent transactions of all
 * replicas, so that transactions of two runs rarely wait for each other.
 */
const POSTGRES_SLICES = 64;

/**
 * Creates an execution meter.
 * @throws ConfigError for an invalid models.yaml
 */
export const createExecutionMeter = defineService({
  name: 'execution-meter',
  async open(host: ServiceHost<ExecutionMeterConfig>) {
    const { config, telemetry, clock, signer, verifier, relay } = host;
    const { context, reloadCatalog } = await openContext(host);
    const { store } = context;
    const ledger = new CallLedger(context);
    const prices = new PriceList(clock);
    const slots = new ModelSlots(store);
    host.defer(() => slots.close());
    const calls = new ModelCalls({ context, ledger, prices, slots, provider: lazyProvider() });
    const flushEvents = () => relay.flushSoon();
    const routes = meterRoutes({ ...context, signer, verifier, calls, prices, flushEvents });
    const server = await host.listen(routes, { enforceSlotGrants: true, limits: MESSAGE_LIMITS });
    const watch = watchFreezes({ store, calls, log: telemetry.log });
    host.defer(() => watch.stop());
    const sweeps = {
      'expired reservations': () => expireReservations(context, ledger, calls),
      'calls of dead replicas': () => settleCallsOfDeadReplicas(context, ledger, calls),
      'models file': reloadCatalog,
    };
    return {
      server,
      prepare: async () => {
        const settled = await settleOrphanedCalls(context, ledger);
        if (settled > 0)
          telemetry.log.warn({ calls: settled }, 'settled calls of a previous process');
      },
      background: [new Sweeper(sweeps, config.sweepMs, telemetry.log, host.isClockSkewed)],
      // Calls in flight finish within drainMs or are aborted; in both cases they are settled.
      drain: () => calls.close(config.drainMs),
      limits: { callsMs: config.drainMs + 1_000 },
    };
  },
});

async function openContext(
  host: ServiceHost<ExecutionMeterConfig>,
): Promise<{ readonly context: MeterContext; readonly reloadCatalog: () => Promise<void> }> {
  const { config, telemetry, clock, relay } = host;
  const models = await CatalogFile.open(config, telemetry.log);
  if (config.captureContent)
    telemetry.log.warn('content capture is enabled: spans contain prompts and answers');
  const events = createMeterEvents(telemetry, config.thresholds);
  const onCommit = (trx: MeterTransaction): void => {
    if (events.hasEvents(trx)) relay.wake();
  };
  const store = await host.openStore(
    (observer) => openMeterStore(config.store, onCommit, observer),
    { onRecovery: (trx, order) => freezeRecovered(trx, order, clock.now()) },
  );
  const { catalog } = models;
  const slices = config.slices ?? (store.dialect === 'sqlite' ? 1 : POSTGRES_SLICES);
  const context = { config, store, clock, telemetry, events, catalog, slices };
  return { context, reloadCatalog: () => models.look() };
}
