import type { Program } from '../load/program.ts';
import { measure, median, type Operation, type Speed } from './measure.ts';

/** The measured operations by printed name. */
export type Operations = Readonly<Record<string, Operation>>;

/** The servers of the operations, by name. */
export type Servers = Readonly<Record<string, Pick<Program, 'cpuMs'>>>;

/** The speed of one measurement, with the CPU time of the server. */
interface Run extends Speed {
  /** CPU time of the server; NaN when unknown. */
  readonly cpuMs: number;
}

/** Comparisons of the operations over all rounds. */
export interface Results {
  /** Median over the rounds of the ratio between the throughputs of two operations in the same round. */
  ratio(operation: string, to: string, inFlight: number): number;
  /** Median over the rounds of the ratio between the p50 latencies of two operations in the same round. */
  p50Ratio(operation: string, to: string, inFlight: number): number;
}

const IN_FLIGHT = [1, 64] as const;
const ROUNDS = 7;
const ROUND_MS = 600;
const WARM_UP_MS = 1_000;

/**
 * Measures the operations alternately, in rounds, so that changes in machine load affect all operations equally. Prints
 * the medians and the CPU time of the servers per operation, which is stable under other load.
 */
export async function compare(operations: Operations, servers: Servers = {}): Promise<Results> {
  const names = Object.keys(operations);
  const runs = new Map<string, Run[]>();
  for (const operation of Object.values(operations)) await measure(operation, 64, WARM_UP_MS);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const inFlight of IN_FLIGHT) {
      for (const [name, operation] of Object.entries(operations)) {
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
  const ratioOf = (figure: keyof Speed) => (name: string, to: string, inFlight: number) => {
    const baseline = of(inFlight, to);
    const ratios = of(inFlight, name).map(
      (run, round) => run[figure] / (baseline[round]?.[figure] ?? Number.NaN),
    );
    return median(ratios);
  };
  return { ratio: ratioOf('perSecond'), p50Ratio: ratioOf('p50Ms') };
}

/** CPU time of the server per operation, milliseconds. */
function costOf(runs: readonly Run[]): string {
  const sum = (figure: 'operations' | 'cpuMs'): number =>
    runs.reduce((total, run) => total + run[figure], 0);
  const cost = sum('cpuMs') / sum('operations');
  return Number.isNaN(cost) ? '' : cost.toFixed(3);
}
