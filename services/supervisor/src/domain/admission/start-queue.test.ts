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
  it('admits one start for each run that ends, once the limit is reached (BD-5)', () => {
    const queue = atLimit('acme');
    for (let number = 0; number < 10; number += 1) queue.add(start('acme', number));
    // The first start is admitted as a probe.
    const first = queue.next(0);
    expect(first).toEqual(start('acme', 0));
    expect(queue.next(1)).toBeUndefined();
    for (let number = 0; number < 3; number += 1) {
      queue.setActive('acme', `run-of-acme-${number}`, false, 1);
    }
    // Two starts are admitted for three ended runs, because the probe is active, too.
    expect([queue.next(1), queue.next(1), queue.next(1)]).toEqual([
      start('acme', 1),
      start('acme', 2),
      undefined,
    ]);
    expect(queue.waiting).toBe(7);
  });

  it('admits one start per probe interval at the limit, so that runs that do not end do not block all starts (BD-5)', () => {
    const queue = atLimit('acme');
    for (let number = 0; number < 3; number += 1) queue.add(start('acme', number));
    expect(queue.next(0)).toEqual(start('acme', 0));
    expect(queue.next(PROBE_MS - 1)).toBeUndefined();
    expect(queue.next(PROBE_MS)).toEqual(start('acme', 1));
    expect(queue.next(PROBE_MS + 1)).toBeUndefined();
  });

  it('admits starts of the tenant with the fewest active runs first, oldest first within a tenant (BD-5)', () => {
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

  it('accepts a burst up to the configured limits, and rejects further starts with the setting and a retry delay (BD-5)', () => {
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

  it('keeps the queue short under sustained load when the limit of active runs is low (BD-5)', () => {
    const queue = new StartQueue<StartOrder>(LIMITS);
    // A start takes 20 ms without other active runs, and longer with active runs.
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
      // Every 25 ms, one run ends and two starts arrive.
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

  it('queues few starts of a tenant whose load grows, and rejects no start of another tenant (BD-5)', () => {
    const queue = atLimit('acme');
    const most = Math.floor(queue.limit / 4);
    // Places starts so far apart that they are not a burst.
    const place = (number: number) => {
      const release = queue.reserve('acme', number * 1_001);
      queue.add(start('acme', number));
      release();
    };
    for (let number = 0; number < most; number += 1) place(number);
    expect(() => place(most)).toThrow(`at most ${most} may wait now`);
    expect(() => queue.reserve('rivals', most * 1_001)).not.toThrow();
  });

  it('keeps the load of a limited number of tenants, and evicts the least recently used tenant (BD-5)', () => {
    const queue = atLimit('acme');
    // Fills the queue of the tenant with a burst. The next start is rejected, and after a rejection no further burst is
    // accepted.
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

  it('grows exponentially while starts take no longer than without load (BD-5)', () => {
    const limit = new ActiveLimit();
    const starts = [];
    for (let active = limit.current; active < 500; active = limit.current) {
      limit.observe(20, active, active);
      starts.push(active);
    }
    expect(starts.length).toBeLessThan(80);
  });

  it('shrinks down to a minimum while starts take much longer than without load (BD-5)', () => {
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
  ])(
    'grows again when the machine has become permanently slower and %s runs are active (BD-5)',
    (_, active) => {
      const limit = new ActiveLimit();
      limit.observe(20, 1, 0);
      for (let now = 0; now < 180_000; now += PROBE_MS) limit.observe(100, active, now);
      expect(limit.current).toBeGreaterThan(MIN_ACTIVE_RUNS);
    },
  );

  it('does not raise the unloaded duration of starts during an overload of a few seconds (BD-5)', () => {
    const limit = new ActiveLimit();
    limit.observe(5, 1, 0);
    for (let now = 0; now < 10_000; now += 25) limit.observe(20, limit.current, now);
    expect(limit.current).toBe(MIN_ACTIVE_RUNS);
  });
});
