import type { DistributedPlatform, Replica, Selector } from '@writ/testing/distributed';
import type { ProxyFault } from '@writ/testing/faults';
import type { Evidence } from '../invariants/invariant.ts';
import type { Attacker } from '../load/attacker.ts';

/** A fault that is injected for a limited time. */
export interface Disturbance {
  /** One phrase, such as `kill -9 agent-worker-1`. */
  readonly what: string;
  /** The components that are disturbed; at most one disturbance per target is active. */
  readonly targets: readonly string[];
  readonly begin: () => Promise<void> | void;
  readonly end: () => Promise<void> | void;
  readonly forMs: number;
}

/** Picks one element at random. */
export type Choose = <T>(from: readonly T[]) => T;

/** The running chaos test into which faults are injected. */
export interface Scene extends Evidence {
  readonly attacker: Attacker;
}

/** A kind of fault. */
export interface Kind {
  /** Name of the counter of this kind in the report. */
  readonly name: string;
  /** Whether it is exempt from the limit on concurrently active faults. */
  readonly isBackground?: true;
  /** Number of occurrences in each round of the schedule after the first round; default 1. */
  readonly times?: number;
  /** Whether it can be injected on this machine; default yes. */
  readonly isPossible?: (platform: DistributedPlatform) => boolean;
  readonly disturbance: (
    scene: Scene,
    choose: Choose,
    between: (least: number, most: number) => number,
  ) => Disturbance;
}

/** Target of faults of the PostgreSQL server. */
export const POSTGRES = 'postgres';

const LINKS: readonly (readonly [Selector, Selector])[] = [
  ['supervisor', 'spawn-budget'],
  ['supervisor', 'execution-meter'],
  ['supervisor', 'tool-gateway'],
  ['supervisor', 'agent-worker'],
  ['agent-worker', 'supervisor'],
  ['agent-worker', 'spawn-budget'],
  ['agent-worker', 'execution-meter'],
  ['agent-worker', 'tool-gateway'],
  ['tool-gateway', 'supervisor'],
  ['execution-meter', 'model'],
];
const FAULTS: readonly ProxyFault[] = ['down', 'stalled', 'blackhole', 'garbage', { delayMs: 200 }];

/** Faults of processes and connections. */
export const PROCESS_KINDS: readonly Kind[] = [
  {
    name: 'kill -9',
    times: 3,
    disturbance: ({ platform: { replicas } }, choose, between) => {
      const replica = choose(replicas);
      return {
        what: `kill -9 ${replica.name}`,
        targets: [replica.name],
        begin: () => replica.kill(),
        end: () => restart(replica),
        forMs: between(200, 3_000),
      };
    },
  },
  {
    name: 'SIGTERM',
    disturbance: ({ platform: { replicas } }, choose, between) => {
      const replica = choose(replicas);
      return {
        what: `SIGTERM ${replica.name}`,
        targets: [replica.name],
        begin: async () => void (await replica.stop()),
        end: () => restart(replica),
        forMs: between(200, 3_000),
      };
    },
  },
  {
    name: 'SIGSTOP',
    times: 2,
    disturbance: ({ platform: { replicas } }, choose, between) => {
      const replica = choose(replicas);
      return {
        what: `SIGSTOP ${replica.name}`,
        targets: [replica.name],
        begin: () => replica.pause(),
        end: () => replica.resume(),
        forMs: between(500, 6_000),
      };
    },
  },
  {
    name: 'link',
    times: 2,
    disturbance: ({ platform }, choose, between) => {
      const [from, to] = choose(LINKS);
      const fault = choose(FAULTS);
      const name = typeof fault === 'string' ? fault : `delay ${fault.delayMs} ms`;
      return {
        what: `${name}: ${from} to ${to}`,
        targets: [`${from} to ${to}`],
        begin: () => platform.fail(from, to, fault),
        end: () => platform.fail(from, to, 'none'),
        forMs: between(500, 5_000),
      };
    },
  },
  {
    name: 'link to a store',
    disturbance: ({ platform }, choose, between) => {
      const { name } = choose(platform.replicas);
      const store = choose(['postgres', 'nats'] as const);
      const fault = choose<ProxyFault>(['down', 'stalled']);
      return {
        what: `${fault}: ${name} to ${store}`,
        targets: [`${name} to ${store}`],
        begin: () => platform.fail(name, store, fault),
        end: () => platform.fail(name, store, 'none'),
        forMs: between(500, 4_000),
      };
    },
  },
  {
    name: 'kill -9 nats',
    disturbance: ({ platform: { nats } }, _choose, between) => ({
      what: 'kill -9 nats',
      targets: ['nats'],
      begin: () => nats.kill(),
      end: () => nats.start(),
      forMs: between(200, 5_000),
    }),
  },
  {
    name: 'SIGSTOP nats',
    disturbance: ({ platform: { nats } }, _choose, between) => ({
      what: 'SIGSTOP nats',
      targets: ['nats'],
      begin: () => nats.signal('SIGSTOP'),
      end: () => nats.signal('SIGCONT'),
      forMs: between(500, 5_000),
    }),
  },
  {
    name: 'kill -9 postgres',
    disturbance: ({ platform: { postgres } }, _choose, between) => ({
      what: 'kill -9 postgres',
      targets: [POSTGRES],
      begin: () => postgres.kill(),
      end: () => postgres.start(),
      forMs: between(100, 2_000),
    }),
  },
  {
    name: 'SIGSTOP postgres',
    disturbance: ({ platform: { postgres } }, _choose, between) => ({
      what: 'SIGSTOP postgres',
      targets: [POSTGRES],
      begin: () => postgres.signal('SIGSTOP'),
      end: () => postgres.signal('SIGCONT'),
      forMs: between(300, 3_000),
    }),
  },
];

const TRIES = 60;

/** Starts a replica and retries while it fails to start, for example because its store is down. */
export async function restart(replica: Replica): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      if (!replica.isUp) await replica.start();
      return;
    } catch (error) {
      if (tries >= TRIES) throw error;
    }
  }
}
