import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { SlowFirst } from './scripts/slow-first.ts';

const FOLDERS = [
  'libs',
  'services',
  'examples',
  'clients',
  'scripts',
  'platform',
  'test',
  'deploy',
];

/** What takes long by its nature, by names: see CONTRIBUTING.md. */
const PROOFS = [
  'test/{load,distributed,interop,conformance}/**/*.test.ts',
  'deploy/**/*.test.ts',
  `{${FOLDERS.join()}}/**/*{crash,faults,kill,mutations,replicas}.test.ts`,
];

/** Everything fails at once, and nothing else may take the machine meanwhile. */
const CHAOS = ['test/chaos/**/*.test.ts'];

export default defineConfig({
  test: {
    reporters: ['minimal', './scripts/count-reporter.ts'],
    silent: 'passed-only',
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: FOLDERS.map((folder) => `${folder}/**/*.test.ts`),
          exclude: ['**/node_modules/**', ...PROOFS, ...CHAOS],
        },
      },
      { extends: true, test: { name: 'proofs', include: PROOFS } },
      { extends: true, test: { name: 'chaos', include: CHAOS } },
    ],
    pool: 'forks',
    // Several services must be able to share a process anyway, and it makes the suite more than twice as fast.
    isolate: false,
    // Tests that wait for other processes leave their core to those that compute.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: SlowFirst },
    // A third of the start of a process is compiling what the one before has compiled.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/compiled') },
    globalSetup: ['./scripts/temp-in-memory.ts', './scripts/postgres-for-tests.ts'],
    setupFiles: ['./scripts/patient-waits.ts'],
    expect: { poll: { timeout: 30_000, interval: 20 } },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    // For what hangs; on a busy machine a test of a second may take a minute.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
