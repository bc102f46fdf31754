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

/** Slow tests, selected by file name or folder: see DEVELOPMENT.md. */
const SLOW_TESTS = [
  'test/{load,distributed,interop,conformance,packages}/**/*.test.ts',
  'deploy/**/*.test.ts',
  'clients/console/test/**/*.test.ts',
  `{${FOLDERS.join()}}/**/*{crash,faults,kill,mutations,processes,replicas}.test.ts`,
];

/** Tests that start a service or the whole platform. */
const INTEGRATION_TESTS = [
  'services/*/test/**/*.test.ts',
  'test/{e2e,agent-proxy}/**/*.test.ts',
  '{platform,clients/cli}/test/**/*.test.ts',
];

/** Files that `writ init` copies; they include a test for the test runner of Node. */
const TEMPLATES = ['clients/cli/template/**'];

/** Chaos tests; nothing else may use the machine while they run. */
const CHAOS_TESTS = ['test/chaos/**/*.test.ts'];

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
          exclude: [
            '**/node_modules/**',
            ...INTEGRATION_TESTS,
            ...SLOW_TESTS,
            ...CHAOS_TESTS,
            ...TEMPLATES,
          ],
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: INTEGRATION_TESTS,
          exclude: ['**/node_modules/**', ...SLOW_TESTS],
        },
      },
      { extends: true, test: { name: 'slow', include: SLOW_TESTS } },
      { extends: true, test: { name: 'chaos', include: CHAOS_TESTS } },
    ],
    pool: 'forks',
    // Test files share a process and its loaded modules, which makes the suite more than twice as fast. This is
    // safe: no test mocks a module (scripts/checks/module-mocks.test.ts), mocks and stubs are reset after each test
    // (below), and in the embedded platform several services share a process anyway.
    isolate: false,
    // One more than the cores, because some tests wait for other processes.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: SlowFirst },
    // Child processes share compiled modules: compiling takes a third of a start.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/compiled') },
    globalSetup: ['./scripts/temp-in-memory.ts', './scripts/postgres-for-tests.ts'],
    setupFiles: ['./scripts/wait-timeouts.ts'],
    expect: { poll: { timeout: 30_000, interval: 20 } },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    // Liveness limits: on a busy machine a test of one second can take a minute.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
