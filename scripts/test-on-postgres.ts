/**
 * Runs the services' tests with their state in PostgreSQL: those that touch what replicas share, or with
 * `--all` every one. What else is said is passed on to vitest.
 */
import { spawnSync } from 'node:child_process';

/** Races, crashes, ledgers, leases and orders: where databases differ, they differ here. */
const SHARED = [
  'services/spawn-budget/test/acquire.test.ts',
  'services/spawn-budget/test/concurrency.test.ts',
  'services/spawn-budget/test/replay.test.ts',
  'services/execution-meter/test/budget.test.ts',
  'services/execution-meter/test/queue.test.ts',
  'services/execution-meter/test/stops.test.ts',
  'services/execution-meter/test/tabs.test.ts',
  'services/tool-gateway/test/crash.test.ts',
  'services/tool-gateway/test/freeze.test.ts',
  'services/tool-gateway/test/receipts.test.ts',
  'services/tool-gateway/test/repeats.test.ts',
  'services/supervisor/test/approvals-rules.test.ts',
  'services/supervisor/test/halts.test.ts',
  'services/supervisor/test/purge.test.ts',
  'services/supervisor/test/receipts.test.ts',
  'services/supervisor/test/runs-crash.test.ts',
  'services/agent-worker/test/endings.test.ts',
  'services/agent-worker/test/races.test.ts',
  'services/agent-worker/test/slots.test.ts',
];

/** Kills at every point of every kind of agent: minutes here, and crash.test.ts does the same on one kind. */
const LEFT_OUT = 'services/agent-worker/test/kinds-crash.test.ts';

const { status } = runTests(process.argv.slice(2));
process.exitCode = status ?? 1;

function runTests(args: readonly string[]) {
  const chosen = args.includes('--all') ? ['services/'] : SHARED;
  const others = args.filter((arg) => arg !== '--all');
  const tests = ['--project', 'tests', '--project', 'proofs', '--exclude', LEFT_OUT];
  return spawnSync('vitest', ['run', ...tests, ...chosen, ...others], {
    stdio: 'inherit',
    env: { ...process.env, WRIT_TEST_STORE: 'postgres' },
  });
}
