import { runCommand } from './run-command.ts';

/**
 * Records the journals that services/agent-worker/test/recorded-journals.test.ts replays. Run it for a release, after
 * setting RELEASE in services/agent-worker/test/journals/recorded-agent.ts; recordings of earlier releases stay.
 */
if (import.meta.main) {
  process.env.WRIT_RECORD_JOURNALS = 'true';
  const test = 'services/agent-worker/test/recorded-journals.test.ts';
  const { code, output } = await runCommand('vitest', 'run', '--project', 'integration', test);
  console.error(output);
  process.exitCode = code;
}
