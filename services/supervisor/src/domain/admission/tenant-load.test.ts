import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BURST_MS, CALM_MS, LEVEL_MS, MIN_LEVEL, TenantLoad } from './tenant-load.ts';

/** Number of starts that may wait under any load. */
const MOST = 2;
/** Number of runs that the platform serves at the same time. */
const ACTIVE = 6;
/** Number of runs that a tenant may have in flight under any load. */
const ALWAYS = Math.max(MIN_LEVEL, ACTIVE + MOST);

/** A tenant: up to `ACTIVE` of its runs are active, and its other starts wait. */
class Tenant {
  readonly load = new TenantLoad();
  inFlight = 0;

  start(now: number): boolean {
    const { inFlight } = this;
    const waiting = Math.max(0, inFlight - ACTIVE);
    const isAccepted = this.load.accepts({ waiting, inFlight, most: MOST }, now);
    if (isAccepted) this.inFlight += 1;
    return isAccepted;
  }

  end(): void {
    if (this.inFlight === 0) return;
    this.inFlight -= 1;
    this.load.ended();
  }
}

describe('TenantLoad', () => {
  it('accepts every start that follows the end of a run, for any number of runs in flight (BD-5)', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 256 }),
        fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 200 }), ended: fc.nat(8) })),
        (callers, turns) => {
          const tenant = new Tenant();
          for (let caller = 0; caller < callers; caller += 1) {
            expect(tenant.start(1_000)).toBe(true);
          }
          let now = 1_000;
          for (const { afterMs, ended } of turns) {
            now += afterMs;
            const count = Math.min(ended, callers);
            for (let number = 0; number < count; number += 1) tenant.end();
            for (let number = 0; number < count; number += 1) {
              expect(tenant.start(now)).toBe(true);
            }
          }
        },
      ),
    );
  });

  it('limits the runs in flight while twice as many starts arrive as runs end (BD-5)', () => {
    fc.assert(
      fc.property(fc.integer({ min: 5, max: 200 }), fc.nat(64), (everyMs, before) => {
        const tenant = new Tenant();
        // Runs that were in flight before do not raise the limit permanently.
        for (let number = 0; number < before; number += 1) tenant.start(0);
        let now = CALM_MS;
        let rejected = 0;
        for (let turn = 0; turn < 400; turn += 1) {
          now += everyMs;
          tenant.end();
          for (let number = 0; number < 2; number += 1) if (!tenant.start(now)) rejected += 1;
        }
        expect(tenant.inFlight).toBeLessThanOrEqual(ALWAYS + 1);
        expect(rejected).toBeGreaterThan(300);
      }),
    );
  });

  it('accepts no burst soon after a rejection (BD-5)', () => {
    const tenant = new Tenant();
    const fill = (now: number) => {
      let accepted = 0;
      while (accepted < 100 && tenant.start(now)) accepted += 1;
      return accepted;
    };
    for (let number = 0; number <= ALWAYS; number += 1) tenant.start(number * BURST_MS * 2);
    const now = ALWAYS * BURST_MS * 2;
    while (tenant.inFlight > 0) tenant.end();
    expect(fill(now + 1)).toBe(ALWAYS);
    while (tenant.inFlight > 0) tenant.end();
    expect(fill(now + CALM_MS + 2)).toBe(100);
  });

  it('does not accept starts at twice the recent rate of ended runs as a burst (BD-5)', () => {
    const tenant = new Tenant();
    // Runs one after the other, at 50 runs per second.
    let now = 0;
    for (; now < LEVEL_MS * 2; now += 20) {
      tenant.start(now);
      tenant.end();
    }
    // None of the runs that start from now on ends within the first 200 ms.
    let most = 0;
    for (const since = now; now < since + BURST_MS; now += 10) {
      tenant.start(now);
      if (now >= since + 200 && now % 20 === 0) tenant.end();
      most = Math.max(most, tenant.inFlight);
    }
    expect(most).toBeLessThanOrEqual(ALWAYS + 2);
    // After some time without a rejection, many starts at once are accepted as a burst.
    while (tenant.inFlight > 0) tenant.end();
    now += LEVEL_MS * 2;
    for (let number = 0; number < 64; number += 1) expect(tenant.start(now)).toBe(true);
  });

  it('lowers the level of a tenant that had fewer runs in flight in the last window (BD-5)', () => {
    const tenant = new Tenant();
    for (let number = 0; number < 64; number += 1) tenant.start(0);
    while (tenant.inFlight > ACTIVE) tenant.end();
    let now = 0;
    while (now < LEVEL_MS * 3) {
      now += BURST_MS + 1;
      tenant.end();
      tenant.start(now);
    }
    const steps = Array.from({ length: 64 }, (_, number) => tenant.start(now + number * BURST_MS));
    expect(steps.filter(Boolean).length).toBeLessThan(10);
  });
});
