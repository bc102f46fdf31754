import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GENERATED_FOLDERS, generate } from '../generate.ts';
import { type CommandResult, runCommand } from '../run-command.ts';

/**
 * Generates the code of the contracts into a temporary folder and compares it with the committed code.
 *
 * @returns code 1 with the differences
 */
export async function checkGeneratedCode(): Promise<CommandResult> {
  const fresh = await mkdtemp(join(tmpdir(), 'writ-generated-'));
  try {
    const generated = await generate(fresh);
    if (generated.code !== 0) return generated;
    for (const folder of GENERATED_FOLDERS) {
      const { code, output } = await runCommand('diff', '-rq', folder, join(fresh, folder));
      if (code !== 0) return { code, output: `${output}\nRun: npm run generate` };
    }
    return generated;
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
