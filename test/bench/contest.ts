import type { Program } from '../load/program.ts';
import { measure, median, type Operation, type Speed } from './measure.ts';

/** What is measured, by the name that is printed. */
export type Entrants = Readonly<Record<string, Operation>>;

/** Who serves an entrant, by its name. */
export type Servers = Readonly<Record<string, Pick<Program, 'cpuMs'>>>;

/** A speed, and what it cost. */
interface Run extends Speed {
  /** Of the server; NaN where that is not known. */
  readonly cpuMs: number;
}

/** Medians of every entrant over all rounds, by in-flight and name. */
export interface Results {
  /** Median over the rounds of how one entrant's operations/s compare to another's in the same round. */
  ratio(entrant: string, to: string, inFlight: number): number;
  /** The same of their p50: how many times as long one takes. */
  p50Ratio(entrant: string, to: string, inFlight: number): number;
}

const IN_FLIGHT = [1, 64] as const;
const ROUNDS = 7;
const ROUND_MS = 600;
const WARM_UP_MS = 1_000;

/**
 * Measures the entrants in turns, round after round, so that a machine that drifts is the same for
 * all of them; prints a table of the medians, and of the processor time that the servers took for an
 * operation, which other work on the machine hardly moves.
 */
export async function contest(entrants: Entrants, servers: Servers = {}): Promise<Results> {
  const names = Object.keys(entrants);
  const runs = new Map<string, Run[]>();
  for (const operation of Object.values(entrants)) await measure(operation, 64, WARM_UP_MS);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const inFlight of IN_FLIGHT) {
      for (const [name, operation] of Object.entries(entrants)) {
        const key = `${inFlight} ${name}`;
        const cpuMs = () => servers[name]?.cpuMs() ?? Number.NaN;
        const before = cpuMs();
        const speed = await measure(operation, inFlight, ROUND_MS);
        runs.set(key, [...(runs.get(key) ?? []), { ...speed, cpuMs: cpuMs() - before }]);
      }
    }
  }
  const of = (inFlight: number, name: string): readonly Run[] =>
    runs.get(`${inFlight} ${name}`) ?? [];
  const width = Math.max(...names.map((name) => name.length));
  console.log(`${'operation'.padEnd(width)}  in flight    ops/s   p50 ms   p99 ms   CPU ms`);
  for (const inFlight of IN_FLIGHT) {
    for (const name of names) {
      const middle = (figure: keyof Speed): number =>
        median(of(inFlight, name).map((run) => run[figure]));
      const columns = [
        String(inFlight).padStart(9),
        middle('perSecond').toFixed(0).padStart(7),
        middle('p50Ms').toFixed(2).padStart(7),
        middle('p99Ms').toFixed(2).padStart(7),
        costOf(of(inFlight, name)).padStart(7),
      ];
      console.log([name.padEnd(width), ...columns].join('  '));
    }
  }
  const compare = (figure: keyof Speed) => (entrant: string, to: string, inFlight: number) => {
    const floor = of(inFlight, to);
    const ratios = of(inFlight, entrant).map(
      (run, round) => run[figure] / (floor[round]?.[figure] ?? Number.NaN),
    );
    return median(ratios);
  };
  return { ratio: compare('perSecond'), p50Ratio: compare('p50Ms') };
}

/** The server's processor time for one operation, in milliseconds. */
function costOf(runs: readonly Run[]): string {
  const sum = (figure: 'operations' | 'cpuMs'): number =>
    runs.reduce((total, run) => total + run[figure], 0);
  const cost = sum('cpuMs') / sum('operations');
  return Number.isNaN(cost) ? '' : cost.toFixed(3);
}
