import { Priority, systemClock } from '@writ/kernel';
import type { StoreLocation } from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { openTab } from '../src/app/tabs/open-tab.ts';
import type { MeterContext } from '../src/context.ts';
import { Catalog } from '../src/domain/catalog/catalog.ts';
import { createMeterEvents } from '../src/events.ts';
import { EXECUTION_METER_DEFAULTS } from '../src/index.ts';
import { openMeterStore } from '../src/store/meter-store.ts';

const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });

/** Opens the store of a meter without its listener and without models; the caller closes it. */
export async function openTabReplica(
  location: StoreLocation,
  slices = location.dialect === 'sqlite' ? 1 : 64,
): Promise<MeterContext> {
  return {
    config: EXECUTION_METER_DEFAULTS as unknown as MeterContext['config'],
    store: await openMeterStore(location, () => undefined),
    clock: systemClock,
    telemetry,
    events: createMeterEvents(telemetry, EXECUTION_METER_DEFAULTS.thresholds),
    catalog: new Catalog(new Map()),
    slices,
  } as MeterContext;
}

/** An agent whose tab is opened, and the session of its run. */
export interface TabOwner {
  readonly tenant: string;
  readonly runId: string;
  readonly instance: string;
  readonly sessionId: string;
  /** Default: none. */
  readonly models?: readonly string[];
  /** Default: none. */
  readonly deadline?: Date;
}

/** Caps in tokens. */
export interface TokenCaps {
  readonly tab?: bigint;
  readonly run?: bigint;
  readonly session?: bigint;
}

/** Opens the tab of a root agent. */
export async function openTabOf(
  context: MeterContext,
  owner: TabOwner,
  { tab, run, session }: TokenCaps,
): Promise<void> {
  const { runId, instance } = owner;
  await openTab(context, {
    tab: {
      agentName: instance,
      parent: undefined,
      state: 'open',
      models: [],
      priority: Priority.NORMAL,
      deadline: undefined,
      near: { reserveTokens: 0n, reserveCostPpm: 0n },
      retention: 'permanent',
      requestId: `open-${runId}`,
      requestDigest: runId,
      eventKey: '',
      epoch: undefined,
      openedAt: new Date(),
      closedAt: undefined,
      ...owner,
    },
    caps: tab === undefined ? {} : { tokens: tab },
    runCaps: run === undefined ? undefined : { tokens: run },
    sessionCaps: session === undefined ? undefined : { tokens: session },
  });
}
