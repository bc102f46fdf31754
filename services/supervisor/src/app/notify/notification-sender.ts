import { type Clock, WakeableLoop } from '@writ/kernel';
import { EgressRefusal, guardedRequest } from '@writ/service';
import type { Telemetry } from '@writ/telemetry';
import { NO_ENDPOINT, retryDelayMs, stateAfter } from '../../domain/notify/next-attempt.ts';
import { type Notification, slackBody, standardBody } from '../../domain/notify/notification.ts';
import { webhookHeaders } from '../../domain/notify/sign.ts';
import {
  claimNotification,
  deleteEndedNotifications,
  dueNotifications,
  endpointOf,
  type NotificationRow,
  saveNotification,
} from '../../store/notifications.ts';
import type { SupervisorStore } from '../../store/supervisor-store.ts';
import type { Endpoint, Notifications } from './notifications-file.ts';

/** Timeout of an attempt, ms. */
const TIMEOUT_MS = 10_000;
/** Time after which an attempt of a replica that died is repeated, ms. */
const CLAIM_MS = 30_000;
/**
 * `MAX_READ` is the maximum number of due notifications per read; `AT_ONCE` is the maximum number of notifications that
 * are sent to one endpoint at the same time.
 */
const MAX_READ = 200;
const AT_ONCE = 4;
/** Maximum number of endpoints that receive notifications at the same time. */
const MAX_ENDPOINTS = 250;
/**
 * How long delivered and failed notifications are kept after they were recorded, ms, so that a repeated event does not
 * add another one.
 */
const KEEP_MS = 7 * 24 * 60 * 60_000;
/** Only the sender changes and deletes notifications. */
const RESOURCE = 'notifications';

/** The dependencies of the sender. */
export interface SenderParts {
  readonly store: SupervisorStore;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'log' | 'metrics'>;
  readonly current: () => Notifications;
  readonly config: { readonly notifyPollMs: number; readonly notifyRetryMs: number };
}

/**
 * Sends recorded notifications to their endpoints, at least once each, with the same `webhook-id` in every attempt
 * (PE-2). Replicas share the work: an attempt is claimed in the store. Commits wake the sender; it also polls. A slow
 * endpoint delays only its own notifications (SYS-6).
 */
export class NotificationSender {
  readonly #parts: SenderParts;
  readonly #loop: WakeableLoop;
  readonly #stopping = new AbortController();
  /** The end of the batch in flight, by endpoint. */
  readonly #batches = new Map<string, Promise<void>>();
  #unsubscribe: (() => void) | undefined;

  constructor(parts: SenderParts) {
    this.#parts = parts;
    this.#loop = new WakeableLoop({
      pass: () => this.pass(),
      intervalMs: parts.config.notifyPollMs,
      onError: (error) => this.#onError(error),
    });
  }

  start(): void {
    const { changes } = this.#parts.store;
    this.#unsubscribe = changes.subscribe('notifications', () => this.#loop.wake());
    this.#loop.start();
  }

  /** Aborts attempts in flight; they are repeated after the next start. */
  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#stopping.abort();
    await this.#loop.stop();
    await Promise.all(this.#batches.values());
  }

  /**
   * Starts a batch for each endpoint that has due notifications and no batch in flight, without waiting for the batches
   * to end. Returns 0, for a pass without delay, when more notifications may be due.
   */
  async pass(): Promise<number | undefined> {
    const { store, clock, current } = this.#parts;
    if (current().endpoints.size === 0 || this.#batches.size >= MAX_ENDPOINTS) return undefined;
    const due = await dueNotifications(store.db, clock.now(), [...this.#batches.keys()], MAX_READ);
    for (const [endpoint, rows] of Map.groupBy(due, endpointOf)) {
      if (this.#stopping.signal.aborted || this.#batches.size >= MAX_ENDPOINTS) break;
      this.#batches.set(endpoint, this.#sendBatch(endpoint, rows.slice(0, AT_ONCE)));
    }
    if (due.length > 0) await this.#forget();
    return due.length === MAX_READ ? 0 : undefined;
  }

  /**
   * Sends notifications of one endpoint, then wakes the loop for the next notifications of the endpoint. Never rejects.
   */
  async #sendBatch(endpoint: string, rows: readonly NotificationRow[]): Promise<void> {
    const attempts = await Promise.allSettled(rows.map((row) => this.#send(row)));
    this.#batches.delete(endpoint);
    const failed = attempts.find((attempt) => attempt.status === 'rejected');
    if (failed === undefined) this.#loop.wake();
    // The store failed: the next poll retries.
    else this.#onError(failed.reason);
  }

  #onError(error: unknown): void {
    this.#parts.telemetry.log.error({ err: error }, 'failed to send notifications; retrying');
  }

  async #send(row: NotificationRow): Promise<void> {
    const { store, clock, current } = this.#parts;
    const until = new Date(clock.now().getTime() + CLAIM_MS);
    const isClaimed = await store.transaction((trx) => claimNotification(trx, row, until), {
      resource: RESOURCE,
      background: true,
    });
    if (!isClaimed) return;
    const config = current();
    const endpoint = config.endpoints.get(row.scope)?.find(({ name }) => name === row.endpoint);
    const problem = endpoint === undefined ? NO_ENDPOINT : await this.#post(row, endpoint, config);
    if (this.#stopping.signal.aborted && problem !== undefined) return;
    await this.#record(row, problem);
  }

  /** Sends one request; returns why it failed: a status, `timeout`, a rule of the egress guard, or an error code. */
  async #post(
    row: NotificationRow,
    endpoint: Endpoint,
    { consoleUrl, allowance }: Notifications,
  ): Promise<string | undefined> {
    const notification = JSON.parse(row.message) as Notification;
    const isSlack = endpoint.format === 'slack';
    const body = (isSlack ? slackBody : standardBody)(notification, consoleUrl);
    const message = { id: row.notification_id, at: this.#parts.clock.now(), body };
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'writ',
      'content-length': String(Buffer.byteLength(body)),
      ...webhookHeaders(message, endpoint.key),
    };
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signal = AbortSignal.any([this.#stopping.signal, timeout]);
    try {
      const sent = await guardedRequest(endpoint.url, {
        method: 'POST',
        headers,
        body,
        allowance,
        signal,
      });
      sent.response.destroy();
      return sent.status >= 200 && sent.status < 300 ? undefined : `status_${sent.status}`;
    } catch (error) {
      if (timeout.aborted) return 'timeout';
      if (error instanceof EgressRefusal) return `egress_${error.rule}`;
      return error instanceof Error && 'code' in error ? String(error.code) : 'failed';
    }
  }

  async #record(row: NotificationRow, problem: string | undefined): Promise<void> {
    const { store, clock, telemetry, config } = this.#parts;
    const attempt = row.attempts + 1;
    const state = stateAfter(attempt, problem);
    const next = new Date(clock.now().getTime() + retryDelayMs(attempt, config.notifyRetryMs));
    const isRecorded = await store.transaction(
      (trx) => saveNotification(trx, row, { state, problem: problem ?? '', next_attempt_at: next }),
      { resource: RESOURCE, background: true },
    );
    if (!isRecorded) return;
    const { notification_id: id, tenant, endpoint } = row;
    const fields = { notification_id: id, tenant, endpoint, attempt };
    const result = state === 'open' ? 'retried' : state;
    telemetry.metrics.count('notifications', { 'writ.tenant': tenant, 'writ.state': result });
    if (state === 'delivered') telemetry.log.info(fields, 'notification delivered');
    else if (state === 'failed')
      telemetry.log.error({ ...fields, problem }, 'notification given up');
    else telemetry.log.warn({ ...fields, problem }, 'notification failed; retrying');
  }

  async #forget(): Promise<void> {
    const { store, clock } = this.#parts;
    const before = new Date(clock.now().getTime() - KEEP_MS);
    await store.transaction((trx) => deleteEndedNotifications(trx, before), {
      resource: RESOURCE,
      background: true,
    });
  }
}
