/**
 * Runs the tests of the services with PostgreSQL: those about state that replicas share, or with
 * `--all` the others as well. Other arguments are passed to vitest.
 */
import { spawnSync } from 'node:child_process';

/** Races, crashes, ledgers, leases and orders, where databases differ. */
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
  // Their platform has agent-proxy on PostgreSQL.
  'test/agent-proxy/agent-keys.test.ts',
  'test/agent-proxy/interruptions-faults.test.ts',
  'test/agent-proxy/sub-agents.test.ts',
  'test/interop/mcp-waiting.test.ts',
];

/** Every test with rows of agent-proxy. */
const ALL_OF_AGENT_PROXY = [
  'test/agent-proxy/',
  'test/interop/mcp-tools',
  'test/interop/mcp-waiting',
];

/** Slow tests that are omitted. */
const EXCLUDED = [
  // Kills at every point of every kind of agent: takes minutes, and crash.test.ts does the same for one kind.
  'services/agent-worker/test/kinds-crash.test.ts',
  // They choose their databases themselves: both, or PostgreSQL only.
  'services/*/test/{turns,schedules,slices}-replicas.test.ts',
];

const { status } = runTests(process.argv.slice(2));
process.exitCode = status ?? 1;

function runTests(args: readonly string[]) {
  const chosen = args.includes('--all') ? ['services/', ...ALL_OF_AGENT_PROXY] : SHARED;
  const others = args.filter((arg) => arg !== '--all');
  const excluded = EXCLUDED.flatMap((pattern) => ['--exclude', pattern]);
  const tests = ['--project', 'tests', '--project', 'slow', ...excluded];
  return spawnSync('vitest', ['run', ...tests, ...chosen, ...others], {
    stdio: 'inherit',
    env: { ...process.env, WRIT_TEST_STORE: 'postgres' },
  });
}
