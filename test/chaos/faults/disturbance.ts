import type { DistributedPlatform, Replica, Selector } from '@writ/testing/distributed';
import type { ProxyFault } from '@writ/testing/faults';

/** A fault that is injected for a limited time. */
export interface Disturbance {
  /** One phrase, such as `kill -9 agent-worker-1`. */
  readonly what: string;
  /** The component that is disturbed; at most one disturbance per target is active. */
  readonly target: string;
  readonly begin: () => Promise<void> | void;
  readonly end: () => Promise<void> | void;
  readonly forMs: number;
}

/** Picks one element at random. */
export type Choose = <T>(from: readonly T[]) => T;

type Kind = (
  platform: DistributedPlatform,
  choose: Choose,
  between: (least: number, most: number) => number,
) => Disturbance;

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

const killReplica: Kind = ({ replicas }, choose, between) => {
  const replica = choose(replicas);
  return {
    what: `kill -9 ${replica.name}`,
    target: replica.name,
    begin: () => replica.kill(),
    end: () => restart(replica),
    forMs: between(200, 3_000),
  };
};

const stopReplica: Kind = ({ replicas }, choose, between) => {
  const replica = choose(replicas);
  return {
    what: `SIGTERM ${replica.name}`,
    target: replica.name,
    begin: async () => void (await replica.stop()),
    end: () => restart(replica),
    forMs: between(200, 3_000),
  };
};

const pauseReplica: Kind = ({ replicas }, choose, between) => {
  const replica = choose(replicas);
  return {
    what: `SIGSTOP ${replica.name}`,
    target: replica.name,
    begin: () => replica.pause(),
    end: () => replica.resume(),
    forMs: between(500, 6_000),
  };
};

const failLink: Kind = (platform, choose, between) => {
  const [from, to] = choose(LINKS);
  const fault = choose(FAULTS);
  const name = typeof fault === 'string' ? fault : `delay ${fault.delayMs} ms`;
  return {
    what: `${name}: ${from} to ${to}`,
    target: `${from} to ${to}`,
    begin: () => platform.fail(from, to, fault),
    end: () => platform.fail(from, to, 'none'),
    forMs: between(500, 5_000),
  };
};

const cutStore: Kind = (platform, choose, between) => {
  const { name } = choose(platform.replicas);
  const store = choose(['postgres', 'nats'] as const);
  const fault = choose<ProxyFault>(['down', 'stalled']);
  return {
    what: `${fault}: ${name} to ${store}`,
    target: `${name} to ${store}`,
    begin: () => platform.fail(name, store, fault),
    end: () => platform.fail(name, store, 'none'),
    forMs: between(500, 4_000),
  };
};

const killNats: Kind = ({ nats }, _choose, between) => ({
  what: 'kill -9 nats',
  target: 'nats',
  begin: () => nats.kill(),
  end: () => nats.start(),
  forMs: between(200, 5_000),
});

const pauseNats: Kind = ({ nats }, _choose, between) => ({
  what: 'SIGSTOP nats',
  target: 'nats',
  begin: () => nats.signal('SIGSTOP'),
  end: () => nats.signal('SIGCONT'),
  forMs: between(500, 5_000),
});

const killPostgres: Kind = ({ postgres }, _choose, between) => ({
  what: 'kill -9 postgres',
  target: 'postgres',
  begin: () => postgres.kill(),
  end: () => postgres.start(),
  forMs: between(100, 2_000),
});

const pausePostgres: Kind = ({ postgres }, _choose, between) => ({
  what: 'SIGSTOP postgres',
  target: 'postgres',
  begin: () => postgres.signal('SIGSTOP'),
  end: () => postgres.signal('SIGCONT'),
  forMs: between(300, 3_000),
});

/** Every kind of fault; frequent kinds are listed more than once. */
export const KINDS: readonly Kind[] = [
  killReplica,
  killReplica,
  killReplica,
  stopReplica,
  pauseReplica,
  pauseReplica,
  failLink,
  failLink,
  cutStore,
  killNats,
  pauseNats,
  killPostgres,
  pausePostgres,
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
