import { resolve } from 'node:path';
import { isPostgresAvailable } from '@writ/testing/postgres';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { PEERS } from './catalog.ts';
import { installedPackages } from './install-packages.ts';
import { startPeer } from './peer-process.ts';
import { type Surroundings, startSurroundings } from './surroundings.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const RUNS = 3;
/** Peers whose packages are dependencies of the project. */
const ALWAYS = ['direct', 'agent-proxy', 'writ'];

const packages = installedPackages();
if (packages === undefined) {
  process.stderr.write(
    'skipped: peers whose packages are not installed (npm run bench -- peers installs them)\n',
  );
}
const startable = PEERS.filter(
  ({ id, needsPostgres }) =>
    (packages !== undefined || ALWAYS.includes(id)) &&
    (needsPostgres !== true || isPostgresAvailable()),
);

describe('programs of npm run bench -- peers', () => {
  let surroundings: Surroundings;
  beforeAll(async () => {
    surroundings = await startSurroundings(packages ?? ROOT);
  });
  afterAll(() => surroundings.close());

  it.each(startable)(
    'makes two model calls and one tool call in each run of $name (CO-1)',
    async (entry) => {
      const peer = await startPeer(entry, surroundings);
      onTestFinished(() => peer.close());
      await peer.run(RUNS);
      const counts = await surroundings.countsOf(entry.id);
      expect(counts).toEqual({ first: RUNS, second: RUNS, toolCalls: RUNS });
    },
  );
});
