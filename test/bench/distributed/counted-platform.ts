import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { newId } from '@writ/kernel';
import { type DistributedPlatform, startDistributedPlatform } from '@writ/testing/distributed';
import { untilAdmitted } from '../../load/admitted.ts';
import { twoStepExample } from '../../load/two-step-example.ts';
import type { PostgresTraffic } from './count-round-trips.ts';

const COUNTER = new URL('count-round-trips.ts', import.meta.url).href;
/** Default durability of PostgreSQL: a commit is on disk when it returns. */
const DURABLE = { fsync: 'on', full_page_writes: 'on', shared_buffers: '128MB' };

/** Starts a platform whose services count their traffic. */
export async function startCounted(stack: AsyncDisposableStack) {
  const sockets = mkdtempSync(join(tmpdir(), 'writ-bench-'));
  stack.defer(() => rmSync(sockets, { recursive: true, force: true }));
  const platform = await startDistributedPlatform({
    example: twoStepExample(),
    replicas: 1,
    faultProxies: false,
    postgresSettings: DURABLE,
    env: { NODE_OPTIONS: `--import ${COUNTER}` },
    envOf: ({ name }) => ({ BENCH_COUNTS_SOCKET: socketOf(sockets, name) }),
  });
  stack.defer(() => platform.close());
  return { platform, sockets };
}

/** Starts a run and resolves when it has succeeded. */
export async function twoSteps({ client }: DistributedPlatform): Promise<void> {
  const start = { requestId: newId('req'), agent: 'refund-worker', goal: 'Do it.' };
  const stopReason = await untilAdmitted(async () => {
    let reason: string | undefined;
    for await (const { event } of client.runs.runAgent({ start })) {
      if (event?.entry.case === 'result') reason = event.entry.value.stopReason;
    }
    return reason;
  });
  if (stopReason !== 'success') throw new Error(`A run ended with ${stopReason}.`);
}

/** Makes two-step runs, `inFlight` at a time, and resolves when all have succeeded. */
export async function runAll(
  platform: DistributedPlatform,
  { runs, inFlight }: { readonly runs: number; readonly inFlight: number },
): Promise<void> {
  let left = runs;
  const next = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await twoSteps(platform);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, next));
}

/** The socket on which a replica reports its traffic. */
const socketOf = (folder: string, replica: string): string => join(folder, `${replica}.sock`);

/** Returns the traffic of every service since its start. */
export async function trafficAt(
  platform: DistributedPlatform,
  sockets: string,
): Promise<Readonly<Record<string, PostgresTraffic>>> {
  const services = await Promise.all(
    platform.replicas.map(async ({ name, service }) => {
      const counts = await text(connect(socketOf(sockets, name)));
      return [service, JSON.parse(counts) as PostgresTraffic] as const;
    }),
  );
  return Object.fromEntries(services);
}
