import { CORE_SERVICES, type CoreService } from '@writ/identity';
import type { DistributedPlatform, Replica } from '@writ/testing/distributed';
import { type Choose, type Kind, POSTGRES, restart } from './disturbance.ts';

/** Faults of databases. */
export const STORE_KINDS: readonly Kind[] = [
  {
    name: 'disk full',
    isPossible: ({ disk }) => disk !== undefined,
    disturbance: ({ platform: { disk } }, _choose, between) => ({
      what: 'disk full',
      // Also targets PostgreSQL, because a killed server may fail to start on a full disk.
      targets: [POSTGRES, 'disk'],
      begin: () => disk?.fill(),
      end: () => disk?.free(),
      forMs: between(1_000, 5_000),
    }),
  },
  {
    name: 'restored store',
    disturbance: ({ platform }, choose) =>
      otherStore(platform, choose, 'restored', 'went back in time', async (service) => {
        await copySchema(platform, service);
        const [first] = replicasOf(platform, service);
        // Every start raises the mark in the database, so the copy now has a lower mark.
        if (first !== undefined) await markAgain(first);
      }),
  },
  {
    name: 'emptied store',
    disturbance: ({ platform }, choose) =>
      otherStore(platform, choose, 'emptied', 'is empty', async (service) => {
        await platform.rows(service, `create schema ${other(service)}`);
      }),
  },
];

/**
 * Returns a fault that replaces the schema of a service with another one, checks that no replica starts on it (BD-4),
 * and restores the original schema.
 */
function otherStore(
  platform: DistributedPlatform,
  choose: Choose,
  what: string,
  because: string,
  prepare: (service: CoreService) => Promise<void>,
) {
  const service = choose(CORE_SERVICES);
  const replicas = replicasOf(platform, service);
  const links = replicas.map(({ name }) => `${name} to postgres`);
  const schema = schemaOf(service);
  const kept = `${schema}_kept`;
  return {
    what: `${what}: store of ${service}`,
    targets: [POSTGRES, ...replicas.map(({ name }) => name), ...links],
    begin: async () => {
      await prepare(service);
      await Promise.all(replicas.map((replica) => replica.kill()));
      await platform.rows(
        service,
        `alter schema ${schema} rename to ${kept}; alter schema ${other(service)} rename to ${schema}`,
      );
      try {
        for (const replica of replicas) await refuses(replica, because);
      } finally {
        await platform.rows(
          service,
          `drop schema ${schema} cascade; alter schema ${kept} rename to ${schema}`,
        );
      }
    },
    end: async () => void (await Promise.all(replicas.map(restart))),
    forMs: 0,
  };
}

/** Checks that the replica refuses to start. @throws Error when the replica starts, or fails for another reason */
async function refuses(replica: Replica, because: string): Promise<void> {
  const failure = await replica.start().then(
    () => 'it started',
    (error: unknown) => String(error),
  );
  if (!failure.includes(because)) {
    throw new Error(`${replica.name} must refuse its store because it ${because}, but: ${failure}`);
  }
}

async function markAgain(replica: Replica): Promise<void> {
  await replica.kill();
  await restart(replica);
}

/** Copies the tables of a service and their rows, as a backup does. */
async function copySchema(platform: DistributedPlatform, service: CoreService): Promise<void> {
  const schema = schemaOf(service);
  await platform.rows(
    service,
    `create schema ${other(service)};
     do $$ declare name text; begin
       for name in select tablename from pg_tables where schemaname = '${schema}' loop
         execute format('create table ${other(service)}.%I (like ${schema}.%I including all)', name, name);
         execute format('insert into ${other(service)}.%I overriding system value select * from ${schema}.%I', name, name);
       end loop;
     end $$`,
  );
}

function replicasOf({ replicas }: DistributedPlatform, service: CoreService): Replica[] {
  return replicas.filter((replica) => replica.service === service);
}

function schemaOf(service: CoreService): string {
  return service.replaceAll('-', '_');
}

function other(service: CoreService): string {
  return `${schemaOf(service)}_other`;
}
