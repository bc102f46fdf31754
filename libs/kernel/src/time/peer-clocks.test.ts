import { describe, expect, it } from 'vitest';
import { ManualClock } from './clock.ts';
import { PeerClocks } from './peer-clocks.ts';

function setUp() {
  const clock = new ManualClock();
  const clocks = new PeerClocks(clock);
  const see = (peer: string, offsetMs: number) =>
    clocks.observe(peer, clock.now().getTime() + offsetMs);
  return { clock, clocks, see };
}

describe('peer clocks', () => {
  it('report the local clock as wrong only if a majority of clocks differs from it (BD-3)', () => {
    const { clocks, see } = setUp();
    expect(clocks.ownLeadMs()).toBe(0);
    see('supervisor', 3_600_000);
    // One peer is no majority: either clock may be wrong.
    expect(clocks.ownLeadMs()).toBe(0);
    see('agent-worker', 0);
    expect(clocks.ownLeadMs()).toBe(0);
    expect(clocks.offsets().get('supervisor')).toBe(3_600_000);
    see('spawn-budget', 3_500_000);
    // Two of four: still no majority.
    expect(clocks.ownLeadMs()).toBe(0);
    see('tool-gateway', 3_500_000);
    expect(clocks.ownLeadMs()).toBe(-3_500_000);
  });

  it('detect a correction of the local clock without another call (BD-3)', () => {
    const { clock, clocks, see } = setUp();
    see('supervisor', 0);
    see('agent-worker', 0);
    clock.step(-90_000);
    expect(clocks.ownLeadMs()).toBe(-90_000);
    clock.step(90_000);
    expect(clocks.ownLeadMs()).toBe(0);
  });

  it('use the median of the readings of a peer, so that one late response has no effect', () => {
    const { clock, clocks, see } = setUp();
    for (const offset of [0, 0, -30_000, 100, 0]) see('supervisor', offset);
    expect(clocks.offsets().get('supervisor')).toBe(0);
    expect(clocks.slowestNow('supervisor')).toBe(clock.now().getTime() - 30_000);
    for (let count = 0; count < 16; count += 1) see('supervisor', 5_000);
    expect(clocks.slowestNow('supervisor')).toBe(clock.now().getTime() + 5_000);
  });

  it('convert times of a peer to the local clock', () => {
    const { clocks, see } = setUp();
    expect(clocks.toOwn('supervisor', 1_000_000)).toBe(1_000_000);
    see('supervisor', 60_000);
    expect(clocks.toOwn('supervisor', 1_000_000)).toBe(940_000);
  });

  it('treat differences below two seconds as zero', () => {
    const { clock, clocks, see } = setUp();
    see('supervisor', -1_999);
    expect(clocks.offsets().get('supervisor')).toBe(0);
    expect(clocks.slowestNow('supervisor')).toBe(clock.now().getTime());
  });

  it('discard readings of a peer that are ten minutes old', () => {
    const { clock, clocks, see } = setUp();
    see('supervisor', 60_000);
    clock.advance(10 * 60_000);
    expect(clocks.offsets().size).toBe(0);
    expect(clocks.slowestNow('supervisor')).toBeUndefined();
  });
});
