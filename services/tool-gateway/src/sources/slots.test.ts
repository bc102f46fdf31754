import { localSlotShare, type SlotUser } from '@writ/store';
import { describe, expect, it } from 'vitest';
import { type SlotLimits, Slots } from './slots.ts';

/** The places of a gateway that has no other beside it. */
const slotsOf = (limits: SlotLimits) =>
  new Slots('desk', limits, (_, limit) => localSlotShare(limit));

const never = new AbortController().signal;

describe('the places of a source (TG-6)', () => {
  it('refuses whoever finds the queue full, and says which limits are met', async () => {
    const slots = slotsOf({ maxInFlight: 1, maxQueued: 0 });
    const release = await slots.acquire(never);
    await expect(slots.acquire(never)).rejects.toMatchObject({
      reason: 'TOOL_QUEUE_FULL',
      metadata: { source: 'desk', max_in_flight: '1', max_queued: '0' },
    });
    release();
    await expect(slots.acquire(never)).resolves.toBeTypeOf('function');
  });

  it('serves those who wait in their order', async () => {
    const slots = slotsOf({ maxInFlight: 1, maxQueued: 2 });
    const release = await slots.acquire(never);
    const order: string[] = [];
    const first = slots.acquire(never).then((done) => [order.push('first'), done()]);
    const second = slots.acquire(never).then((done) => [order.push('second'), done()]);
    release();
    await Promise.all([first, second]);
    expect(order).toEqual(['first', 'second']);
  });

  it('lets go of whoever is called off while waiting, and gives no place twice', async () => {
    const slots = slotsOf({ maxInFlight: 1, maxQueued: 1 });
    const release = await slots.acquire(never);
    const off = new AbortController();
    const waiting = slots.acquire(off.signal);
    off.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    release();
    release();
    const again = await slots.acquire(never);
    const next = slots.acquire(never);
    again();
    await expect(next).resolves.toBeTypeOf('function');
  });

  it('are idle as well when whoever waited has gone, or cannot be served, and nobody had a place', async () => {
    let user: SlotUser | undefined;
    // As where other gateways have all of them.
    const none = { ...localSlotShare(() => 0), waiting: () => 0 };
    const slots = new Slots('desk', { maxInFlight: 1, maxQueued: 1 }, (_, __, its) => {
      user = its;
      return none;
    });
    const off = new AbortController();
    const waiting = slots.acquire(off.signal);
    const idle = slots.idle();
    off.abort(new Error('gone'));
    await expect(waiting).rejects.toThrow('gone');
    await idle;
    const unserved = slots.acquire(never);
    const idleAgain = slots.idle();
    user?.failed(new Error('The store is away.'));
    await expect(unserved).rejects.toThrow('The store is away.');
    await idleAgain;
  });
});
