import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManualClock, UnavailableError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { expect, it, onTestFinished } from 'vitest';
import { SUPERVISOR_DEFAULTS } from '../../config.ts';
import type { SupervisorContext } from '../../context.ts';
import { HALT_ORDERS, type HaltOrderKind } from '../../domain/order/order-rules.ts';
import { insertHalt, newHalt } from '../../store/halt/halts.ts';
import { placeOrder } from '../../store/orders.ts';
import { openSupervisorStore, type SupervisorStore } from '../../store/supervisor-store.ts';
import { OrderDriver } from './order-driver.ts';

const HALT_ID = 'hlt_1';
/** The maximum number of waiting transactions of a store. */
const MAX_QUEUED = 10_000;

async function openStore(): Promise<SupervisorStore> {
  const folder = mkdtempSync(join(tmpdir(), 'writ-orders-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const location = { dialect: 'sqlite', file: join(folder, 'supervisor.db') } as const;
  const store = await openSupervisorStore(location, () => undefined);
  onTestFinished(() => store.close());
  return store;
}

/** Places an order of a new halt of everything. */
async function place(store: SupervisorStore, kind: HaltOrderKind, at: Date) {
  const ordered = { reason: 'Stop.', orderedBy: 'anna', orderedFor: 'acme', endRuns: false, at };
  const order = { orderId: 'ord_1', kind, tenant: '', runId: '', payload: { haltId: HALT_ID } };
  await store.transaction(async (trx) => {
    await insertHalt(trx, newHalt({ haltId: HALT_ID, scope: {}, ...ordered }));
    await placeOrder(trx, order, at);
  });
  return await store.db.selectFrom('orders').selectAll().executeTakeFirstOrThrow();
}

it.each(HALT_ORDERS)(
  'saves a failed attempt of the order "%s" although the transaction queue is full (SV-9, BD-2)',
  async (kind) => {
    const clock = new ManualClock();
    const store = await openStore();
    const order = await place(store, kind, clock.now());
    const blocked = Promise.withResolvers<void>();
    const flood: Promise<void>[] = [];
    /** Fills the transaction queue, then fails like a peer that does not answer. */
    const fail = async (): Promise<never> => {
      const running = Promise.withResolvers<void>();
      flood.push(
        store.transaction(async () => {
          running.resolve();
          await blocked.promise;
        }),
      );
      await running.promise;
      const queue = { length: MAX_QUEUED };
      flood.push(...Array.from(queue, () => store.transaction(async () => undefined)));
      throw new UnavailableError('UNAVAILABLE', 'The peer is down.');
    };
    const answers = async () => true;
    const driver = new OrderDriver({
      store,
      clock,
      config: SUPERVISOR_DEFAULTS,
      telemetry: createTelemetry({ service: 'supervisor', logLevel: 'silent' }),
      peers: {
        executionMeter: { halt: fail, unfreeze: fail },
        toolGateway: { halt: async () => [], unfreeze: answers },
      },
    } as unknown as SupervisorContext);
    const driven = driver.drive(`halt ${HALT_ID}`, order);
    await expect.poll(() => flood.length).toBe(MAX_QUEUED + 1);
    const ordinary = store.transaction(async () => undefined);
    await expect(ordinary).rejects.toMatchObject({ reason: 'STORE_QUEUE_FULL' });
    blocked.resolve();
    expect(await driven).toBe('must read');
    await Promise.all(flood);
    const saved = await store.db.selectFrom('orders').selectAll().executeTakeFirstOrThrow();
    expect(saved).toMatchObject({ state: 'open', attempts: 1, last_error: 'UNAVAILABLE' });
    expect(saved.next_attempt_at.getTime()).toBeGreaterThan(clock.now().getTime());
  },
);
