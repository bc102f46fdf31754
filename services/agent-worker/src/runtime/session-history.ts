import { setTimeout as delay } from 'node:timers/promises';
import {
  backoffMs,
  DEFAULT_MAX_RETRIES,
  type HistoryProvider,
  HistoryRetention,
  UnavailableError,
  withTimeout,
} from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { ChatTurn } from '../domain/calls/model-call.ts';
import { loadHistory, saveHistory } from '../store/history.ts';
import { loadItems } from '../store/snapshots.ts';
import type { WorkerReader, WorkerStore, WorkerTransaction } from '../store/worker-store.ts';
import type { LeaseSession } from './leases/lease-session.ts';

/** Dependencies of {@link SessionHistory}. */
export interface SessionHistoryParts {
  readonly session: LeaseSession;
  readonly store: WorkerStore;
  /** Returns the provider of the manifest; undefined for the worker's own store. */
  readonly findProvider: () => HistoryProvider | undefined;
  readonly timeoutMs: number;
  /** Maximum delay before the first retry of a save, in milliseconds; doubles with each retry. */
  readonly restartMs: number;
  readonly log: Logger;
}

const MAX_RETRY_DELAY_MS = 5_000;

/** The history of an agent in its session: in the worker's store or at a provider (AG-8). */
export class SessionHistory {
  readonly #parts: SessionHistoryParts;

  constructor(parts: SessionHistoryParts) {
    this.#parts = parts;
  }

  /**
   * Returns the turns that earlier runs stored, oldest first; none in a run whose retention is not PERMANENT (SUP-4).
   * @throws UnavailableError HISTORY_UNAVAILABLE
   */
  async load(): Promise<readonly ChatTurn[]> {
    const { session, store, findProvider } = this.#parts;
    if (!this.#isKept) return [];
    const provider = findProvider();
    if (provider === undefined) return await loadHistory(store.db, session.row);
    return await this.#inTime(() => provider.load(this.#key()));
  }

  /**
   * Saves the turns of a successful run to the provider before the end of the run is committed; after a crash in
   * between, the turns are saved again. Retries under the same lease, because the supervisor may cancel the agent of an
   * ended run before it could be restarted. After `max_retries` retries, the agent ends and the turns are not saved.
   */
  async saveAtProvider(): Promise<void> {
    const { session, store, findProvider, restartMs, log } = this.#parts;
    const provider = findProvider();
    if (provider === undefined) return;
    const turns = await this.#turns(store.db);
    if (turns === undefined) return;
    const { tenant, run_id: runId, instance } = session.row;
    const { maxRetries = DEFAULT_MAX_RETRIES } = session.manifest.limits;
    const limits = { baseMs: restartMs, maxMs: MAX_RETRY_DELAY_MS };
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#inTime(() => provider.save({ ...this.#key(), runId, instance }, turns));
        return;
      } catch (error) {
        const failure = { tenant, run_id: runId, agent: instance, err: error };
        if (attempt > maxRetries) {
          log.error(failure, 'history not saved');
          return;
        }
        log.warn(failure, 'failed to save history, retrying');
      }
      await delay(backoffMs(attempt, limits));
    }
  }

  /** Saves the turns of a successful run in the worker's store, in the transaction that ends the agent. */
  async save(trx: WorkerTransaction, at: Date): Promise<void> {
    const { session } = this.#parts;
    if (session.manifest.history !== undefined) return;
    const turns = await this.#turns(trx);
    if (turns !== undefined) saveHistory(trx, session.row, turns, at);
  }

  /** Returns the turns of this run; undefined when no turns are kept. */
  async #turns(db: WorkerReader): Promise<readonly ChatTurn[] | undefined> {
    const { conversation, lease } = this.#parts.session;
    if (!this.#isKept || conversation === undefined) return undefined;
    const { items, turns } = conversation;
    const before = items === 0 ? [] : await loadItems(db, lease, 0);
    return [...(before.slice(0, items) as ChatTurn[]), ...turns];
  }

  get #isKept(): boolean {
    const { supervision } = this.#parts.session.meta;
    return supervision?.retention === HistoryRetention.PERMANENT;
  }

  #key() {
    const { tenant, session_id: sessionId, name: agent } = this.#parts.session.row;
    return { tenant, sessionId, agent };
  }

  async #inTime<T>(work: () => Promise<T>): Promise<T> {
    const { timeoutMs, session } = this.#parts;
    try {
      return await withTimeout(work(), timeoutMs, () => {
        throw new Error('The provider did not answer in time.');
      });
    } catch (cause) {
      throw new UnavailableError(
        'HISTORY_UNAVAILABLE',
        `History provider "${session.manifest.history?.provider}" failed.`,
        {},
        { cause },
      );
    }
  }
}
