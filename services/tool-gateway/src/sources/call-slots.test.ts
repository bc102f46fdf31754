import { localSlotShare, type SlotUser } from '@writ/store';
import { describe, expect, it } from 'vitest';
import { type SlotLimits, Slots } from './call-slots.ts';

/** Slots of a gateway without replicas. */
const slotsOf = (limits: SlotLimits) =>
  new Slots('bank', limits, (_, limit) => localSlotShare(limit));

const never = new AbortController().signal;

describe('the slots of a source (TG-6)', () => {
  it('rejects an acquire when the queue is full and names the limits', async () => {
    const slots = slotsOf({ maxInFlight: 1, maxQueued: 0 });
    const release = await slots.acquire(never);
    await expect(slots.acquire(never)).rejects.toMatchObject({
      reason: 'TOOL_QUEUE_FULL',
      metadata: { source: 'bank', max_in_flight: '1', max_queued: '0' },
    });
    release();
    await expect(slots.acquire(never)).resolves.toBeTypeOf('function');
  });

  it('grants slots in FIFO order', async () => {
    const slots = slotsOf({ maxInFlight: 1, maxQueued: 2 });
    const release = await slots.acquire(never);
    const order: string[] = [];
    const first = slots.acquire(never).then((done) => [order.push('first'), done()]);
    const second = slots.acquire(never).then((done) => [order.push('second'), done()]);
    release();
    await Promise.all([first, second]);
    expect(order).toEqual(['first', 'second']);
  });

  it('removes a cancelled waiter, and grants no slot twice', async () => {
    const slots = slotsOf({ maxInFlight: 1, maxQueued: 1 });
    const release = await slots.acquire(never);
    const off = new AbortController();
    const waiting = slots.acquire(off.signal);
    off.abort(new Error('cancelled'));
    await expect(waiting).rejects.toThrow('cancelled');
    release();
    release();
    const again = await slots.acquire(never);
    const next = slots.acquire(never);
    again();
    await expect(next).resolves.toBeTypeOf('function');
  });

  it('become idle after the last waiter is cancelled or rejected', async () => {
    let user: SlotUser | undefined;
    // Other replicas have every slot.
    const none = { ...localSlotShare(() => 0), waiting: () => 0 };
    const slots = new Slots('bank', { maxInFlight: 1, maxQueued: 1 }, (_, __, its) => {
      user = its;
      return none;
    });
    const off = new AbortController();
    const waiting = slots.acquire(off.signal);
    const idle = slots.idle();
    off.abort(new Error('cancelled'));
    await expect(waiting).rejects.toThrow('cancelled');
    await idle;
    const unserved = slots.acquire(never);
    const idleAgain = slots.idle();
    user?.failed(new Error('The store is unreachable.'));
    await expect(unserved).rejects.toThrow('The store is unreachable.');
    await idleAgain;
  });
});
