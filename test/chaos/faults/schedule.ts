import { setTimeout as pause } from 'node:timers/promises';
import { CLOCK_KINDS } from './clocks.ts';
import { type Disturbance, type Kind, PROCESS_KINDS, type Scene } from './disturbance.ts';
import { HOSTILE_KINDS } from './hostility.ts';
import { STORE_KINDS } from './stores.ts';

const MAX_ACTIVE = 2;

const KINDS: readonly Kind[] = [...PROCESS_KINDS, ...CLOCK_KINDS, ...STORE_KINDS, ...HOSTILE_KINDS];

/**
 * Disturbs a platform for `forMs` or until each kind of fault has been injected, whichever is longer, and ends every
 * disturbance. The same seed gives the same disturbances in the same order; their exact timing depends on the machine.
 * @returns the number of disturbances of each kind; zero for a kind that is not possible on this machine
 */
export async function disturb(
  scene: Scene,
  random: () => number,
  forMs: number,
  log: (line: string) => void,
): Promise<Map<string, number>> {
  const counts = new Map(KINDS.map(({ name }) => [name, 0]));
  const possible = KINDS.filter(({ isPossible }) => isPossible?.(scene.platform) ?? true);
  const active = new Map<string, Promise<void>>();
  const counted = new Set<Promise<void>>();
  const failures: unknown[] = [];
  const between = (least: number, most: number) => Math.round(least + random() * (most - least));
  const choose = <T>(from: readonly T[]): T => {
    const chosen = from[Math.floor(random() * from.length)];
    if (chosen === undefined) throw new Error('Cannot choose from an empty list.');
    return chosen;
  };
  const until = performance.now() + forMs;
  // The kinds that remain in this round, in random order, so that each kind occurs in every round.
  let deck: Kind[] = [];
  let rounds = 0;
  while (failures.length === 0) {
    if (deck.length === 0) {
      rounds += 1;
      deck = shuffled(possible, rounds, random);
    }
    if (rounds > 1 && performance.now() > until) break;
    const kind = deck.pop();
    if (kind === undefined) break;
    await pause(between(200, 1_500));
    const next = kind.disturbance(scene, choose, between);
    await free(active, next.targets);
    while (kind.isBackground !== true && counted.size >= MAX_ACTIVE) await Promise.race(counted);
    counts.set(kind.name, (counts.get(kind.name) ?? 0) + 1);
    log(`${next.what} for ${next.forMs} ms`);
    const done = inject(next)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => {
        for (const target of next.targets) active.delete(target);
        counted.delete(done);
      });
    for (const target of next.targets) active.set(target, done);
    if (kind.isBackground !== true) counted.add(done);
  }
  await Promise.all(active.values());
  if (failures.length > 0) throw failures[0];
  return counts;
}

/** Resolves when no disturbance of these targets is active. */
async function free(
  active: ReadonlyMap<string, Promise<void>>,
  targets: readonly string[],
): Promise<void> {
  for (;;) {
    const ofTargets = targets.flatMap((target) => active.get(target) ?? []);
    if (ofTargets.length === 0) return;
    await Promise.all(ofTargets);
  }
}

function shuffled(kinds: readonly Kind[], round: number, random: () => number): Kind[] {
  const deck = kinds.flatMap((kind) =>
    Array.from({ length: round > 1 ? (kind.times ?? 1) : 1 }, () => kind),
  );
  for (let last = deck.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    const [one, two] = [deck[last], deck[other]];
    if (one !== undefined && two !== undefined) [deck[last], deck[other]] = [two, one];
  }
  return deck;
}

async function inject({ begin, end, forMs }: Disturbance): Promise<void> {
  await begin();
  await pause(forMs);
  await end();
}
