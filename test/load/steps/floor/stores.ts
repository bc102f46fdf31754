import { join } from 'node:path';
import { type EchoStore, openEchoStore } from '../../../bench/echo-store.ts';

/**
 * Commits of a step, through libs/store and durable as those of the services; each inserts one row with
 * one column into a table with an index on its key. Every service has a store of its own.
 */
export interface FloorStores {
  readonly meter: Commit;
  readonly supervisor: Commit;
  readonly gateway: Commit;
  readonly worker: Commit;
}

/** Resolves when the row is durable. */
export type Commit = EchoStore['commit'];

/** Opens the stores of both floors in `folder`. */
export async function openFloorStores(folder: string): Promise<FloorStores> {
  const open = async (service: keyof FloorStores): Promise<Commit> =>
    (await openEchoStore(join(folder, `floor-${service}.db`))).commit;
  return {
    meter: await open('meter'),
    supervisor: await open('supervisor'),
    gateway: await open('gateway'),
    worker: await open('worker'),
  };
}
