/**
 * The floor that a governed step stands on, in one process like the embedded platform. A step of it:
 *
 * - three unary calls one after the other, to three servers on loopback, with the client and server of
 *   libs/rpc, grpc-js, protobuf and spans included; without tokens, and with answers of a few bytes;
 * - two, one and two commits in these calls and one of one's own, through libs/store, durable as those
 *   of the services; each inserts one row with one column into a table with an index on its key.
 *
 * It does nothing else: no call to a model, no signature, no rule, no event, no relay or chain beside.
 * Answers `{ work, inFlight, forMs }` with how fast that went and what time on a processor it took; the
 * work is a whole `step`, or a `commit` alone, which tells how much of the step is the disk's.
 */
import { join } from 'node:path';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { type ClosableRpcClient, createRpcClient, createRpcServer, route } from '@writ/rpc';
import { addPosition, openStore, type Store } from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { measure } from '../../bench/measure.ts';

interface FloorDatabase {
  rows: { written_at: Date };
}

/** Commits of each call. */
const CALLS = { meter: 2, supervisor: 1, gateway: 2 } as const;

const folder = process.env.FLOOR_FOLDER ?? '';
const open = (service: string): Promise<Store<FloorDatabase>> =>
  openStore<FloorDatabase>({
    location: { dialect: 'sqlite', file: join(folder, `floor-${service}.db`) },
    service: 'floor',
    migrations: {
      '0001_rows': {
        async up(db) {
          await addPosition(db, db.schema.createTable('rows'))
            .addColumn('written_at', 'timestamptz', (column) => column.notNull())
            .execute();
        },
      },
    },
  });
const commit = (store: Store<FloorDatabase>) =>
  store.transaction((trx) => trx.insertInto('rows').values({ written_at: new Date() }).execute());

const telemetry = createTelemetry({ service: 'floor', logLevel: 'silent' });
const own = await open('worker');
const clients: ClosableRpcClient<typeof KeyService>[] = [];
for (const [service, commits] of Object.entries(CALLS)) {
  const store = await open(service);
  const server = await createRpcServer({
    host: '127.0.0.1',
    port: 0,
    routes: [
      route(KeyService, {
        getKeys: async () => {
          for (let n = 0; n < commits; n += 1) await commit(store);
          return { service };
        },
      }),
    ],
    gate: async () => ({}),
    telemetry,
  });
  server.setServing(true);
  clients.push(createRpcClient(KeyService, { address: server.address, telemetry }));
}
const works = {
  commit: () => commit(own),
  step: async () => {
    for (const client of clients) await client.getKeys({});
    await commit(own);
  },
};
interface Job {
  readonly work: keyof typeof works;
  readonly inFlight: number;
  readonly forMs: number;
}
process.on('message', ({ work, inFlight, forMs }: Job) => {
  const before = process.cpuUsage();
  void measure(works[work], inFlight, forMs).then((speed) => {
    const { user, system } = process.cpuUsage(before);
    process.send?.({ ...speed, cpuMs: (user + system) / 1_000 / speed.operations });
  });
});
// Whoever started it is gone.
process.once('disconnect', () => process.exit());
process.once('SIGTERM', () => process.exit());
process.send?.('ready');
