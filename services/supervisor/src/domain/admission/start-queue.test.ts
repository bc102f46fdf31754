import { OverloadedError } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { ActiveLimit, MIN_ACTIVE_RUNS } from './active-limit.ts';
import { MAX_TENANTS, PROBE_MS, type StartOrder, StartQueue } from './start-queue.ts';

const LIMITS = { maxQueuedRuns: 100, maxQueuedRunsPerTenant: 60 };

function start(tenant: string, number: number): StartOrder {
  return { order_id: `${tenant}-${number}`, tenant, run_id: `run-${tenant}-${number}` };
}

/** Takes all starts that may start at `now`; each becomes active at once, and its start takes `ms`. */
function admitted(queue: StartQueue<StartOrder>, now: number, ms = 10): StartOrder[] {
  const orders: StartOrder[] = [];
  for (let order = queue.next(now); order !== undefined; order = queue.next(now)) {
    queue.setActive(order.tenant, order.run_id, true, now);
    queue.observe(ms, now);
    queue.started(order);
    orders.push(order);
  }
  return orders;
}

/** A queue at its limit, reached by runs of one tenant that never end. */
function atLimit(tenant: string): StartQueue<StartOrder> {
  const queue = new StartQueue<StartOrder>(LIMITS);
  for (let number = 0; number < queue.limit; number += 1) {
    queue.setActive(tenant, `run-of-${tenant}-${number}`, true, 0);
  }
  return queue;
}

describe('StartQueue', () => {
  it('admits as many starts as runs end once the limit is reached (BD-5)', () => {
    const queue = atLimit('acme');
    for (let number = 0; number < 10; number += 1) queue.add(start('acme', number));
    // The first start since a pause is a probe.
    const first = queue.next(0);
    expect(first).toEqual(start('acme', 0));
    expect(queue.next(1)).toBeUndefined();
    for (let number = 0; number < 3; number += 1) {
      queue.setActive('acme', `run-of-acme-${number}`, false, 1);
    }
    // Two, since the probe is active, too.
    expect([queue.next(1), queue.next(1), queue.next(1)]).toEqual([
      start('acme', 1),
      start('acme', 2),
      undefined,
    ]);
    expect(queue.waiting).toBe(7);
  });

  it('tries one start after a pause at the limit, so that runs that do not end block none (BD-5)', () => {
    const queue = atLimit('acme');
    for (let number = 0; number < 3; number += 1) queue.add(start('acme', number));
    expect(queue.next(0)).toEqual(start('acme', 0));
    expect(queue.next(PROBE_MS - 1)).toBeUndefined();
    expect(queue.next(PROBE_MS)).toEqual(start('acme', 1));
    expect(queue.next(PROBE_MS + 1)).toBeUndefined();
  });

  it('admits the tenant with the fewest active runs first, and of one tenant the oldest start (BD-5)', () => {
    const queue = new StartQueue<StartOrder>(LIMITS);
    for (let number = 0; number < 3; number += 1) queue.setActive('acme', `old-${number}`, true, 0);
    for (let number = 0; number < 5; number += 1) queue.add(start('acme', number));
    for (let number = 0; number < 5; number += 1) queue.add(start('rivals', number));
    const names = admitted(queue, 20).map(({ order_id: id }) => id);
    expect(names).toEqual([
      'rivals-0',
      'rivals-1',
      'rivals-2',
      'acme-0',
      'rivals-3',
      'acme-1',
      'rivals-4',
      'acme-2',
      'acme-3',
      'acme-4',
    ]);
  });

  it('accepts a burst up to the settings, and rejects more with the setting and a delay (BD-5)', () => {
    const queue = atLimit('acme');
    const fill = (tenant: string, count: number) => {
      for (let number = 0; number < count; number += 1) {
        const release = queue.reserve(tenant, 0);
        queue.add(start(tenant, number));
        release();
      }
    };
    fill('acme', 60);
    const refused = (tenant: string) => {
      try {
        queue.reserve(tenant, 0);
      } catch (error) {
        return error as OverloadedError;
      }
    };
    expect(refused('acme')).toBeInstanceOf(OverloadedError);
    expect(refused('acme')).toMatchObject({
      reason: 'START_QUEUE_FULL',
      metadata: { setting: 'WRIT_TENANT_MAX_QUEUED_RUNS', used: '60', limit: '60' },
    });
    expect(Number(refused('acme')?.metadata.retry_after_ms)).toBeGreaterThan(0);
    fill('rivals', 40);
    expect(refused('third')).toMatchObject({
      metadata: { setting: 'WRIT_MAX_QUEUED_RUNS', used: '100', limit: '100' },
    });
  });

  it('holds one waiting start under lasting load when few runs may be active (BD-5)', () => {
    const queue = new StartQueue<StartOrder>(LIMITS);
    // Starts beside other runs take longer than the first one.
    queue.observe(20, 0);
    const running = Array.from({ length: MIN_ACTIVE_RUNS }, (_, run) => start('acme', run));
    for (const { run_id: runId } of running) queue.setActive('acme', runId, true, 0);
    for (let times = 0; times < 100; times += 1) queue.observe(60, times);
    expect(queue.limit).toBeLessThan(MIN_ACTIVE_RUNS + 2);
    let number = running.length;
    let rejected = 0;
    const place = (now: number) => {
      try {
        const release = queue.reserve('acme', now);
        queue.add(start('acme', number));
        release();
      } catch {
        rejected += 1;
      }
      number += 1;
      running.push(...admitted(queue, now, 15 * queue.active));
    };
    const above: number[] = [];
    for (let now = 0; now < 30_000; now += 25) {
      // A run ends every 25 ms, in which two starts arrive.
      const [ended] = running.splice(0, 1);
      if (now > 200 && ended !== undefined) queue.setActive('acme', ended.run_id, false, now);
      else if (ended !== undefined) running.unshift(ended);
      place(now);
      place(now + 12);
      if (now > 10_000) above.push(queue.active + queue.waiting - queue.limit);
    }
    expect(Math.max(...above)).toBeLessThanOrEqual(2);
    expect(rejected).toBeGreaterThan(1_000);
  });

  it('counts starts that are being recorded (BD-5)', () => {
    const queue = new StartQueue<StartOrder>({ maxQueuedRuns: 2, maxQueuedRunsPerTenant: 2 });
    const releases = [queue.reserve('acme', 0), queue.reserve('acme', 0)];
    expect(() => queue.reserve('acme', 0)).toThrow('WRIT_TENANT_MAX_QUEUED_RUNS');
    for (const release of releases) release();
    expect(() => queue.reserve('acme', 0)).not.toThrow();
  });

  it('holds few starts of a tenant whose load grows, and rejects none of another tenant (BD-5)', () => {
    const queue = atLimit('acme');
    const most = Math.floor(queue.limit / 4);
    // One start at a time, each long after the one before: no burst.
    const place = (number: number) => {
      const release = queue.reserve('acme', number * 1_001);
      queue.add(start('acme', number));
      release();
    };
    for (let number = 0; number < most; number += 1) place(number);
    expect(() => place(most)).toThrow(`at most ${most} may wait now`);
    expect(() => queue.reserve('rivals', most * 1_001)).not.toThrow();
  });

  it('keeps the loads of a limited number of tenants, those that started runs last (BD-5)', () => {
    const queue = atLimit('acme');
    // A burst up to the settings; after its rejection, no further burst is accepted.
    for (let number = 0; number < LIMITS.maxQueuedRunsPerTenant; number += 1) {
      const release = queue.reserve('acme', 0);
      queue.add(start('acme', number));
      release();
    }
    expect(() => queue.reserve('acme', 0)).toThrow('at most 60 may wait now');
    expect(queue.next(0)).toEqual(start('acme', 0));
    const place = (tenant: string) => queue.reserve(tenant, 0)();
    for (let tenant = 1; tenant < MAX_TENANTS; tenant += 1) place(`tenant-${tenant}`);
    expect(() => place('acme')).toThrow('at most 4 may wait now');
    for (let tenant = 1; tenant < MAX_TENANTS; tenant += 1) place(`tenant-${tenant}`);
    expect(() => place('acme')).toThrow('at most 4 may wait now');
    for (let tenant = 0; tenant < MAX_TENANTS; tenant += 1) place(`tenant-${tenant}`);
    expect(() => place('acme')).not.toThrow();
  });
});

describe('ActiveLimit', () => {
  it('grows while starts take as long as without load, for any number of active runs (BD-5)', () => {
    const limit = new ActiveLimit();
    for (let active = 1; active <= 500; active += 1) limit.observe(20, active, active);
    expect(limit.current).toBeGreaterThanOrEqual(499);
  });

  it('grows faster while starts are as short as ever, so that many long runs start soon (BD-5)', () => {
    const limit = new ActiveLimit();
    const starts = [];
    for (let active = limit.current; active < 500; active = limit.current) {
      limit.observe(20, active, active);
      starts.push(active);
    }
    expect(starts.length).toBeLessThan(80);
  });

  it('shrinks while starts take over half as long again, down to a minimum (BD-5)', () => {
    const limit = new ActiveLimit();
    for (let number = 0; number < 20; number += 1) limit.observe(20, 1, number);
    const before = limit.current;
    for (let number = 0; number < 80; number += 1) limit.observe(60, 32, number);
    expect(before).toBeGreaterThan(MIN_ACTIVE_RUNS);
    expect(limit.current).toBe(MIN_ACTIVE_RUNS);
  });

  it.each([
    ['few', 4],
    ['many', 100],
  ])('grows again on a machine that stays slower while %s runs are active (BD-5)', (_, active) => {
    const limit = new ActiveLimit();
    limit.observe(20, 1, 0);
    for (let now = 0; now < 180_000; now += PROBE_MS) limit.observe(100, active, now);
    expect(limit.current).toBeGreaterThan(MIN_ACTIVE_RUNS);
  });

  it('does not learn the time of a start from an overload of seconds (BD-5)', () => {
    const limit = new ActiveLimit();
    limit.observe(5, 1, 0);
    for (let now = 0; now < 10_000; now += 25) limit.observe(20, limit.current, now);
    expect(limit.current).toBe(MIN_ACTIVE_RUNS);
  });
});
