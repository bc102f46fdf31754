import { seeded } from '@writ/testing/random';
import { describe, expect, it } from 'vitest';
import { type Installation, simulate } from './simulation.ts';

const TIMES = {
  process: { perTransaction: 1, perCommit: 0.5 },
  server: { perTransaction: 2, perCommit: 0.5 },
  flush: 1,
};
const ALONE: Installation = {
  times: TIMES,
  processes: 1,
  sessions: 4,
  cores: { server: 64 },
  writers: 1,
  thinkMs: 0,
  transactionsPerStep: 1,
};

function simulated(changes: Partial<Installation>, seed = 1) {
  const terms = { forMs: 4_000, warmUpMs: 1_000, random: seeded(seed) };
  return simulate({ ...ALONE, ...changes }, terms);
}

describe('a simulated installation (SYS-5)', () => {
  it('writes one transaction after another for one writer', () => {
    // 0.5 + 0.5 + 1 + 2 + 1 ms each.
    expect(simulated({}).perSecond).toBeCloseTo(200, 0);
    expect(simulated({}).p50).toBeCloseTo(5, 5);
  });

  it('is limited by the event loop of a single process, and by shared cores', () => {
    const limit = 1_000 / (1 + 0.5 / 16);
    expect(simulated({ writers: 64 }).perSecond).toBeGreaterThan(0.85 * limit);
    expect(simulated({ writers: 64 }).perSecond).toBeLessThanOrEqual(limit + 1);
    const shared = simulated({ writers: 64, processes: 4, cores: { shared: 2 } }).perSecond;
    expect(shared).toBeLessThanOrEqual(2_000 / 3);
    expect(shared).toBeGreaterThan(0.8 * (2_000 / 3));
  });

  it('scales with processes until the server is busy', () => {
    const by = (processes: number) => simulated({ writers: 64, processes }).perSecond;
    expect(by(2) / by(1)).toBeGreaterThan(1.7);
    const limited = simulated({ writers: 64, processes: 8, cores: { server: 2 } }).perSecond;
    expect(limited).toBeLessThanOrEqual(1_001);
  });

  it('serializes the writers of a hot tenant and hardly delays the other writers', () => {
    const load = { writers: 64, processes: 4, thinkMs: 200 };
    const usual = simulated(load);
    const hot = simulated({ ...load, serialized: 32 });
    expect(hot.p99).toBeGreaterThan(2 * usual.p99);
    expect(hot.othersP50).toBeLessThan(1.5 * usual.p50);
  });

  it('continues the writers of failed processes in other processes, with equal figures for equal seeds', () => {
    const load = { writers: 64, processes: 4, thinkMs: 200 };
    const failure = { processes: 2, at: 2_000, takeOverMs: 500 };
    const failed = simulated({ ...load, failure });
    expect(failed).toEqual(simulated({ ...load, failure }));
    expect(failed.perSecond).toBeGreaterThan(0.8 * simulated(load).perSecond);
    expect(failed.p99).toBeGreaterThan(100);
  });
});
