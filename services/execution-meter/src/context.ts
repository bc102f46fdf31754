import type { Clock } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import type { ExecutionMeterConfig } from './config.ts';
import type { Catalog } from './domain/catalog/catalog.ts';
import type { MeterEvents } from './events.ts';
import type { MeterStore } from './store/meter-store.ts';

/** Dependencies of calls, sweeps and handlers of the meter; created by service.ts. */
export interface MeterContext {
  readonly config: ExecutionMeterConfig;
  readonly store: MeterStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly events: MeterEvents;
  readonly catalog: Catalog;
  /** Number of slices of each shared level: session, day and month (ADR 32). */
  readonly slices: number;
}
