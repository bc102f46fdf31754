import { join } from 'node:path';
import { type CommandResult, runCommand } from './run-command.ts';
import { vendorProtos } from './vendor-protos.ts';

/** The folders that `generate` writes, relative to the target folder. */
export const GENERATED_FOLDERS = ['vendor/proto', 'libs/contracts/gen'] as const;

/**
 * Writes the third-party contracts and the TypeScript of all contracts below `base`. The same inputs and tool
 * versions always give the same bytes.
 *
 * @param base `.` for the repository itself, another folder to compare with it
 * @returns the exit code and output of `buf generate`; when the contracts do not compile, the existing generated code
 *   is kept
 * @throws Error when a third-party contract cannot be found or printed
 */
export async function generate(base: string): Promise<CommandResult> {
  await vendorProtos(join(base, 'vendor/proto'));
  return runCommand('buf', 'generate', '--output', base);
}

if (import.meta.main) {
  const generated = await generate('.');
  const formatted = await runCommand('buf', 'format', '--diff', '--exit-code', 'proto');
  for (const { code, output } of [generated, formatted]) {
    if (output) console.error(output);
    if (code !== 0) process.exitCode = 1;
  }
}
