import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from '@writ/config';
import { systemClock } from '@writ/kernel';
import { loadTools, missingFunctions } from './local.ts';
import type { Variables } from './source-origin.ts';
import type { ToolsFile } from './tools-file.ts';

/**
 * Checks the modules of tools.yaml as the start of the gateway does: imports each module, creates its tools with a
 * temporary data folder, and disposes of the tools.
 * @returns one sentence for each module that cannot be used or lacks functions for declared tools
 */
export async function localSourceProblems(
  { sources }: Pick<ToolsFile, 'sources'>,
  variables: Variables,
): Promise<readonly string[]> {
  const problems: string[] = [];
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-check-'));
  try {
    for (const { name, origin, tools: names, place } of sources) {
      if (origin.kind !== 'local') continue;
      const source = { name, module: origin.module, place };
      try {
        const context = { dataDir, variables: given(variables), clock: systemClock };
        const tools = await loadTools({ ...source, context });
        const missing = missingFunctions(tools, names);
        await tools[Symbol.asyncDispose]?.();
        if (missing.length > 0)
          problems.push(
            `${place}: the module ${origin.module} of the source ${name} has no function for ${missing.join(', ')}.`,
          );
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        problems.push(...error.problems);
      }
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
  return problems;
}

function given(variables: Variables): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
