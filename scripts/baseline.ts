import { runCommand } from './run-command.ts';

/** The contracts as they were last agreed on: an image that `buf breaking` compares with. */
export const BASELINE = 'proto/baseline.binpb';

if (import.meta.main) {
  const { code, output } = await runCommand(
    'buf',
    'build',
    'proto',
    '--exclude-source-info',
    '--output',
    BASELINE,
  );
  if (output) console.error(output);
  process.exitCode = code;
}
