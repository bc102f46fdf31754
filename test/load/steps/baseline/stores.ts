import { join } from 'node:path';
import { type EchoStore, openEchoStore } from '../../../bench/echo-store.ts';

/**
 * The commits of a step, through libs/store and as durable as those of the services; each inserts one row
 * with one column into a table with an index on its key. Every service has its own store.
 */
export interface BaselineStores {
  readonly meter: Commit;
  readonly supervisor: Commit;
  readonly gateway: Commit;
  readonly worker: Commit;
}

/** Resolves when the row is durable. */
export type Commit = EchoStore['commit'];

/** Opens the stores of both baselines in `folder`. */
export async function openBaselineStores(folder: string): Promise<BaselineStores> {
  const open = async (service: keyof BaselineStores): Promise<Commit> =>
    (await openEchoStore(join(folder, `baseline-${service}.db`))).commit;
  return {
    meter: await open('meter'),
    supervisor: await open('supervisor'),
    gateway: await open('gateway'),
    worker: await open('worker'),
  };
}
