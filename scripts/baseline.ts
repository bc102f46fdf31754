import { runCommand } from './run-command.ts';

/** The baseline of the contracts: an image with which `buf breaking` compares. */
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
