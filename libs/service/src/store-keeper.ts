import { type Clock, isWritError } from '@writ/kernel';
import {
  advanceMark,
  isBehind,
  type MarkerLocation,
  type RecoveryOrder,
  readMarker,
  type Store,
  type StoreMark,
  type StoreMarker,
  type StoreTransaction,
  writeMarker,
} from '@writ/store';
import type { Logger } from '@writ/telemetry';

/** Dependencies of a {@link StoreKeeper}. */
export interface StoreKeeperParts {
  readonly service: string;
  /** Names the database for people. */
  readonly label: string;
  readonly location: MarkerLocation;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * Keeps beside the keys of a service how far its database has come (BD-4), so that a start on an older copy is refused.
 * The mark is raised in the database first and then written to the file, so after a crash the file is never ahead. A
 * copy is found to be older when the database was marked since: at every start, at the end, and every few seconds
 * while it is used.
 */
export class StoreKeeper<DB> {
  readonly #parts: StoreKeeperParts;
  readonly #store: Store<DB>;
  #last: StoreMark | undefined;
  #commits = -1;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  #isUnwritable = false;
  #onBehind: () => void = () => undefined;

  constructor(store: Store<DB>, parts: StoreKeeperParts) {
    this.#store = store;
    this.#parts = parts;
  }

  /**
   * Marks the database, which was opened with its marker. If an operator ordered to continue with an older copy,
   * `onRecovery` runs in the same transaction, and the database gets a new generation.
   */
  async open(
    onRecovery: (trx: StoreTransaction<DB>, order: RecoveryOrder) => Promise<void> = async () =>
      undefined,
  ): Promise<void> {
    const { location, log } = this.#parts;
    const seen = readMarker(location.file);
    const order = seen?.recovery;
    const mark = await advanceMark(this.#store, async (found, trx) => {
      if (seen === undefined || order === undefined) return next(found);
      await onRecovery(trx, order);
      if (!isBehind(found, seen)) return next(found);
      // Copies of the lost part are behind from now on, too.
      const generation = `${order.haltId}-${seen.service}`;
      return { generation, mark: Math.max(found.mark, seen.mark) + 1 };
    });
    if (order !== undefined) {
      log.warn({ halt_id: order.haltId, mark: mark.mark }, 'continuing with a recovered database');
    }
    await this.#write(mark);
  }

  /** Marks the database while it is used; calls `onBehind` once if it goes back in time under the service. */
  start(onBehind: () => void): void {
    this.#onBehind = onBehind;
    this.#schedule();
  }

  /** Marks the database for the last time. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
    await this.#tick();
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#tick().finally(() => this.#schedule());
    }, this.#parts.location.everyMs).unref();
  }

  async #tick(): Promise<void> {
    const { commits } = this.#store;
    if (commits === this.#commits || this.#last === undefined) return;
    try {
      const mark = await advanceMark(this.#store);
      if (isBehind(mark, { ...this.#last, mark: this.#last.mark + 1 })) {
        this.#report(mark);
        return;
      }
      await this.#write(mark);
      this.#commits = commits;
    } catch (error) {
      const isFull = isWritError(error) && error.reason === 'STORE_DISK_FULL';
      if (!isFull) this.#parts.log.warn({ err: error }, 'failed to mark the database; retrying');
    }
  }

  #report({ mark }: StoreMark): void {
    this.#isStopped = true;
    this.#parts.log.error(
      { mark, seen: this.#last?.mark },
      'database went back in time; stop the service and run writ recover',
    );
    this.#onBehind();
  }

  async #write({ generation, mark }: StoreMark): Promise<void> {
    const { service, label: store, location, log, clock } = this.#parts;
    this.#last = { generation, mark };
    const marker: StoreMarker = {
      service,
      store,
      generation,
      mark,
      seenAt: clock.now().toISOString(),
    };
    try {
      await writeMarker(location.file, marker);
      this.#isUnwritable = false;
    } catch (error) {
      if (this.#isUnwritable) return;
      this.#isUnwritable = true;
      log.warn(
        { err: error, file: location.file },
        'store marker cannot be written; a database that goes back in time is not detected at the next start',
      );
    }
  }
}

function next({ generation, mark }: StoreMark): StoreMark {
  return { generation, mark: mark + 1 };
}
