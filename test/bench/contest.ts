import { measure, median, type Operation, type Speed } from './measure.ts';

/** What is measured, by the name that is printed. */
export type Entrants = Readonly<Record<string, Operation>>;

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
 * all of them; prints a table of the medians.
 */
export async function contest(entrants: Entrants): Promise<Results> {
  const names = Object.keys(entrants);
  const speeds = new Map<string, Speed[]>();
  for (const operation of Object.values(entrants)) await measure(operation, 64, WARM_UP_MS);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const inFlight of IN_FLIGHT) {
      for (const [name, operation] of Object.entries(entrants)) {
        const key = `${inFlight} ${name}`;
        const speed = await measure(operation, inFlight, ROUND_MS);
        speeds.set(key, [...(speeds.get(key) ?? []), speed]);
      }
    }
  }
  const of = (inFlight: number, name: string): readonly Speed[] =>
    speeds.get(`${inFlight} ${name}`) ?? [];
  const width = Math.max(...names.map((name) => name.length));
  console.log(`${'operation'.padEnd(width)}  in flight    ops/s   p50 ms   p99 ms`);
  for (const inFlight of IN_FLIGHT) {
    for (const name of names) {
      const middle = (figure: keyof Speed): number =>
        median(of(inFlight, name).map((speed) => speed[figure]));
      const columns = [
        String(inFlight).padStart(9),
        middle('perSecond').toFixed(0).padStart(7),
        middle('p50Ms').toFixed(2).padStart(7),
        middle('p99Ms').toFixed(2).padStart(7),
      ];
      console.log([name.padEnd(width), ...columns].join('  '));
    }
  }
  const compare = (figure: keyof Speed) => (entrant: string, to: string, inFlight: number) => {
    const floor = of(inFlight, to);
    const ratios = of(inFlight, entrant).map(
      (speed, round) => speed[figure] / (floor[round]?.[figure] ?? Number.NaN),
    );
    return median(ratios);
  };
  return { ratio: compare('perSecond'), p50Ratio: compare('p50Ms') };
}
