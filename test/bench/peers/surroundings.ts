import { fileURLToPath } from 'node:url';
import { freePorts } from '@writ/testing/distributed';
import { isPostgresAvailable, startDedicatedPostgres } from '@writ/testing/postgres';
import pg from 'pg';
import { startProgram } from '../../load/program.ts';
import type { ModelCounts } from './model-program.ts';
import type { PeerSurroundings } from './peer-process.ts';

/** The model and the database server of the peers. */
export interface Surroundings extends PeerSurroundings {
  /** Returns the counts of requests that the model has received from a peer. */
  countsOf(id: string): Promise<ModelCounts>;
  close(): Promise<void>;
}

/** Default durability of PostgreSQL: a commit is on disk when it returns. */
const DURABLE = { fsync: 'on', full_page_writes: 'on', shared_buffers: '128MB' };

/**
 * Starts the model and, if PostgreSQL is installed, a PostgreSQL server with fsync.
 * @param packages folder whose node_modules has the packages of the peers
 */
export async function startSurroundings(packages: string): Promise<Surroundings> {
  const model = await startProgram(fileURLToPath(new URL('model-program.ts', import.meta.url)), {});
  const [port = 0] = await freePorts(1);
  const postgres = isPostgresAvailable()
    ? await startDedicatedPostgres(port, undefined, DURABLE)
    : undefined;
  const createDatabase = async (id: string): Promise<string> => {
    if (postgres === undefined) throw new Error('PostgreSQL is not installed.');
    const name = id.replaceAll('-', '_');
    const admin = new pg.Client({ connectionString: postgres.url() });
    await admin.connect();
    try {
      await admin.query(`create database ${name}`);
    } finally {
      await admin.end();
    }
    return postgres.url().replace(/\/postgres$/, `/${name}`);
  };
  return {
    packages,
    modelAddress: model.address,
    createDatabase,
    countsOf: async (id) =>
      (await (await fetch(`http://${model.address}/${id}`)).json()) as ModelCounts,
    close: async () => {
      await model.stop();
      await postgres?.stop();
    },
  };
}
