import { type Clock, isWritError } from '@writ/kernel';
import {
  advanceMark,
  isBehind,
  type MarkerLocation,
  type RecoveryOrder,
  readMarker,
  type Store,
  type StoreMark,
  type StoreTransaction,
  updateMarker,
} from '@writ/store';
import type { Logger } from '@writ/telemetry';

/** Dependencies of a {@link MarkKeeper}. */
export interface MarkKeeperParts {
  readonly service: string;
  /** Name of the database in log lines and error messages. */
  readonly label: string;
  readonly location: MarkerLocation;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * Records the latest mark of a database in a marker file, by default next to the keys of its service (BD-4), so that
 * the service refuses to start on an older copy. The mark is raised in the database first and then written to the file,
 * so after a crash the file is never ahead. A copy is detected as older if the database was marked after the copy was
 * made. The database is marked at every start and, if it was written to by work other than background work since the
 * last mark, periodically and at shutdown. A marker that could not be written is written again at these times.
 */
export class MarkKeeper<DB> {
  readonly #parts: MarkKeeperParts;
  readonly #store: Store<DB>;
  #last: StoreMark | undefined;
  /** The commits of the store before its last mark. */
  #commits: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  #isBehind = false;
  #isUnwritable = false;
  #onBehind: () => void = () => undefined;

  constructor(store: Store<DB>, parts: MarkKeeperParts) {
    this.#store = store;
    this.#parts = parts;
  }

  /**
   * Marks the database, which was opened with its marker. If the marker contains a recovery order, `onRecovery` runs in
   * the same transaction, and a database that is older than the marker or is a different database gets a new
   * generation.
   */
  async open(
    onRecovery: (trx: StoreTransaction<DB>, order: RecoveryOrder) => Promise<void> = async () =>
      undefined,
  ): Promise<void> {
    const { location, log } = this.#parts;
    const { commits } = this.#store;
    const seen = readMarker(location.file);
    const order = seen?.recovery;
    const mark = await advanceMark(this.#store, async (found, trx) => {
      if (seen === undefined || order === undefined) return next(found);
      await onRecovery(trx, order);
      if (!isBehind(found, seen)) return next(found);
      // With the new generation, copies that contain the lost changes are also refused from now on.
      const generation = `${order.haltId}-${seen.service}`;
      return { generation, mark: Math.max(found.mark, seen.mark) + 1 };
    });
    if (order !== undefined) {
      log.warn({ halt_id: order.haltId, mark: mark.mark }, 'continuing with a recovered database');
    }
    await this.#write(mark, order);
    this.#commits = commits;
  }

  /**
   * Marks the database periodically; calls `onBehind` once if the database goes back in time while the service runs.
   */
  start(onBehind: () => void): void {
    this.#onBehind = onBehind;
    this.#schedule();
  }

  /**
   * Stops the periodic marks and marks the database a last time if it was written to by work other than background work
   * since the last mark.
   */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
    await this.#tick('failed to mark the database at the stop');
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#tick().finally(() => this.#schedule());
    }, this.#parts.location.everyMs).unref();
  }

  /**
   * Marks the database if it was written to, and writes a marker that could not be written; logs `problem` if the
   * database cannot be marked.
   */
  async #tick(problem = 'failed to mark the database; retrying'): Promise<void> {
    const { commits } = this.#store;
    const last = this.#last;
    if (last === undefined || this.#isBehind) return;
    if (commits === this.#commits) {
      if (this.#isUnwritable) await this.#write(last);
      return;
    }
    try {
      // The mark is not raised if the database went back in time, so that the next start detects it too.
      const mark = await advanceMark(this.#store, (found) =>
        isBehind(found, last) ? found : next(found),
      );
      if (isBehind(mark, next(last))) {
        this.#report(mark);
        return;
      }
      await this.#write(mark);
      this.#commits = commits;
    } catch (error) {
      const isFull = isWritError(error) && error.reason === 'STORE_DISK_FULL';
      if (!isFull) this.#parts.log.warn({ err: error }, problem);
    }
  }

  #report({ mark }: StoreMark): void {
    this.#isStopped = true;
    this.#isBehind = true;
    this.#parts.log.error(
      { mark, seen: this.#last?.mark },
      'database went back in time; stop the service and run writ recover',
    );
    this.#onBehind();
  }

  /**
   * Writes the marker without the order that was carried out. Another recovery order, which was given while the service
   * runs, stays in the marker and is carried out at the next start of the service.
   */
  async #write({ generation, mark }: StoreMark, carriedOut?: RecoveryOrder): Promise<void> {
    const { service, label: store, location, log, clock } = this.#parts;
    this.#last = { generation, mark };
    const seenAt = clock.now().toISOString();
    try {
      await updateMarker(location.file, { service, store, generation, mark, seenAt }, carriedOut);
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
