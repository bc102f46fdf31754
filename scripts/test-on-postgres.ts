/**
 * Runs the tests of the services with PostgreSQL: by default only tests of state that replicas share, with `--all` all
 * tests except EXCLUDED. Other arguments are passed to vitest.
 */
import { spawnSync } from 'node:child_process';

/** Tests of races, crashes, ledgers, leases and ordering, whose results could depend on the database. */
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
  // The platform of these tests runs agent-proxy on PostgreSQL.
  'test/agent-proxy/agent-keys.test.ts',
  'test/agent-proxy/interruptions-faults.test.ts',
  'test/agent-proxy/sub-agents.test.ts',
  'test/interop/mcp-waiting.test.ts',
];

/** Tests in test/ that write rows of agent-proxy. */
const TESTS_OF_AGENT_PROXY = [
  'test/agent-proxy/',
  'test/interop/mcp-tools',
  'test/interop/mcp-waiting',
];

/** Slow tests that are omitted. */
const EXCLUDED = [
  // This test kills the worker at every point of every kind of agent, which takes minutes; crash.test.ts does the same
  // for one kind.
  'services/agent-worker/test/kinds-crash.test.ts',
  // These tests choose their databases themselves: SQLite and PostgreSQL, or PostgreSQL only.
  'services/*/test/{turns,schedules,slices}-replicas.test.ts',
];

const { status } = runTests(process.argv.slice(2));
process.exitCode = status ?? 1;

function runTests(args: readonly string[]) {
  const chosen = args.includes('--all') ? ['services/', ...TESTS_OF_AGENT_PROXY] : SHARED;
  const others = args.filter((arg) => arg !== '--all');
  const excluded = EXCLUDED.flatMap((pattern) => ['--exclude', pattern]);
  const projects = ['tests', 'integration', 'slow'].flatMap((name) => ['--project', name]);
  return spawnSync('vitest', ['run', ...projects, ...excluded, ...chosen, ...others], {
    stdio: 'inherit',
    env: { ...process.env, WRIT_TEST_STORE: 'postgres' },
  });
}
