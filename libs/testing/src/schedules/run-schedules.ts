import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { postgresLocation } from '../postgres/index.ts';
import { seeded } from '../random.ts';
import { ReplicaSet, type ScheduledReplica, type ScheduledService } from './replica-set.ts';

/** Total number of schedules for all services; WRIT_TEST_SCHEDULES overrides it. */
const DEFAULT_SCHEDULES = 1_000;

/** Probability of each fault before a step of the client that causes faults. */
const LOSE_SESSIONS = 0.03;
const KILL = 0.015;
const RESTART = 0.015;

/** One random schedule. */
export interface Schedule<R extends ScheduledReplica> {
  /** Part of the name of everything that the schedule creates, so that schedules can share a store. */
  readonly seed: number;
  readonly replicas: ReplicaSet<R>;
}

/** The steps and invariants of one schedule. */
export interface Scenario {
  /** Runs before the clients. */
  prepare(): Promise<void>;
  /** One step of a client; `name` is unique in the schedule. */
  step(random: () => number, name: string): Promise<void>;
  /** Runs after the last step; throws when an invariant does not hold. */
  check(): Promise<void>;
}

/** Options of {@link runSchedules}. */
export interface ScheduleOptions<R extends ScheduledReplica> {
  readonly service: ScheduledService<R> & {
    /** Makes the database reject each commit that breaks an invariant. */
    guard(replica: R): Promise<void>;
    scenario(schedule: Schedule<R>): Scenario;
  };
  readonly dialect: 'sqlite' | 'postgres';
  /** Maximum number of replicas; each schedule uses between one and this many. */
  readonly maxReplicas: number;
  readonly schedules: number;
  readonly clients: number;
  /** Steps of each client. */
  readonly steps: number;
}

/** Returns the number of schedules for one test, given its share of the total; at least 1. */
export function schedulesOf(share: number): number {
  const all = Number(process.env.WRIT_TEST_SCHEDULES ?? DEFAULT_SCHEDULES);
  return Math.max(1, Math.round(all * share));
}

/**
 * Runs random schedules one after the other on the replicas of a service: clients send requests, while replicas are
 * killed and restarted, and lose the sessions that hold their locks. The seeds are consecutive numbers that start at
 * WRIT_TEST_SEED + 1 (default: 1).
 * @throws Error naming the seed of the schedule that failed
 */
export async function runSchedules<R extends ScheduledReplica>(
  options: ScheduleOptions<R>,
): Promise<void> {
  const { service, dialect, maxReplicas, schedules } = options;
  const folder = await mkdtemp(join(tmpdir(), 'writ-schedules-'));
  const location =
    dialect === 'postgres'
      ? await postgresLocation()
      : ({ dialect, file: join(folder, 'store.db') } as const);
  const replicas = await ReplicaSet.open(service, location, maxReplicas);
  try {
    const [first] = await replicas.all();
    if (first === undefined) throw new Error('There is no replica.');
    await service.guard(first);
    const before = Number(process.env.WRIT_TEST_SEED ?? 0);
    for (let seed = before + 1; seed <= before + schedules; seed += 1) {
      replicas.use(1 + (seed % maxReplicas));
      try {
        await runSchedule(options, { seed, replicas });
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        throw new Error(`schedule ${seed} on ${dialect}: ${message}`, { cause: error });
      }
    }
  } finally {
    await replicas.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function runSchedule<R extends ScheduledReplica>(
  { service, clients, steps }: ScheduleOptions<R>,
  schedule: Schedule<R>,
): Promise<void> {
  const { seed, replicas } = schedule;
  const scenario = service.scenario(schedule);
  await scenario.prepare();
  const runClient = async (client: number): Promise<void> => {
    const random = seeded(seed * clients + client);
    const faults = seeded(-seed);
    for (let step = 0; step < steps; step += 1) {
      // Faults come from one client, so that they do not interrupt each other.
      if (client === 0) await causeFault(replicas, faults);
      await scenario.step(random, `s${seed}-c${client}-${step}`);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, client) => runClient(client)));
  await scenario.check();
}

async function causeFault<R extends ScheduledReplica>(
  replicas: ReplicaSet<R>,
  random: () => number,
): Promise<void> {
  const chance = random();
  if (chance < KILL) await replicas.kill(random);
  else if (chance < KILL + RESTART) await replicas.restart(random);
  else if (chance < KILL + RESTART + LOSE_SESSIONS) await replicas.loseSessions();
}
