import { afterEach, beforeEach, expect, it } from 'vitest';
import { NotificationSender } from '../src/app/notify/notification-sender.ts';
import { loadNotifications } from '../src/app/notify/notifications-file.ts';
import { newNotification } from '../src/app/notify/notify.ts';
import {
  findNotifications,
  insertNotifications,
  type NotificationRow,
} from '../src/store/notifications.ts';
import type { SupervisorStore } from '../src/store/supervisor-store.ts';
import { AuditHarness } from './audit-harness.ts';
import { SECRET, WebhookReceiver } from './webhook-receiver.ts';

const ID = 'ntf_1';
/** Longer than a replica claims an attempt. */
const AFTER_CLAIM_MS = 31_000;

let receiver: WebhookReceiver;
let harness: AuditHarness;
beforeEach(async () => {
  receiver = await WebhookReceiver.start();
  harness = await AuditHarness.open();
});
afterEach(async () => {
  await harness.close();
  await receiver.close();
});

/** Creates the sender of a replica; the sender adds the states that it counts to `counted`. */
function sender(counted: string[], store: SupervisorStore): NotificationSender {
  const file = { text: receiver.file(), file: 'notifications.yaml' };
  const notifications = loadNotifications(file, { HOOK_SECRET: SECRET });
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const count = (_: string, labels: Readonly<Record<string, string>>) =>
    void counted.push(labels['writ.state'] ?? '');
  return new NotificationSender({
    store,
    clock: harness.clock,
    telemetry: { log, metrics: { count } },
    current: () => notifications,
    config: { notifyPollMs: 60_000, notifyRetryMs: 10 },
  } as unknown as ConstructorParameters<typeof NotificationSender>[0]);
}

async function row(): Promise<NotificationRow | undefined> {
  return (await findNotifications(harness.store.db, [ID]))[0];
}

it('keeps a notification in the state delivered when another replica records a failure after its claim expired (PE-2, BD-3)', async () => {
  const { store, clock } = harness;
  const at = clock.now();
  const message = { type: 'test', timestamp: at.toISOString(), data: { tenant: 'acme' } } as const;
  const target = { scope: 'acme', endpoint: 'on-call', tenant: 'acme' };
  const inserted = [newNotification(ID, target, message, at)];
  await store.transaction((trx) => insertNotifications(trx, inserted));
  receiver.statuses.push(500);

  const countedByOther: string[] = [];
  const other = sender(countedByOther, store);
  const deliverByOther = async () => {
    clock.advance(AFTER_CLAIM_MS);
    await other.pass();
    await expect.poll(() => countedByOther).toEqual(['delivered']);
  };
  let delivered: Promise<void> | undefined;
  let committed = 0;
  // The transactions of this replica after its failed attempt wait until the other replica has delivered.
  const transaction: SupervisorStore['transaction'] = async (work, options) => {
    if (receiver.received.length > 0) {
      delivered ??= deliverByOther();
      await delivered;
    }
    const result = await store.transaction(work, options);
    committed += 1;
    return result;
  };
  const counted: string[] = [];
  const late = sender(counted, { db: store.db, transaction } as unknown as SupervisorStore);
  await late.pass();
  // The claim, the result, and the deletion of old notifications.
  await expect.poll(() => committed).toBe(3);
  await late.stop();
  await other.stop();
  expect(receiver.received).toHaveLength(2);
  expect(await row()).toMatchObject({ state: 'delivered', attempts: 2, problem: '' });
  expect(counted).toEqual([]);
});
