import type { TestPlatform } from '@writ/testing/platform';
import { runCli } from '../src/cli.ts';

/** Exit code and output of a command line. */
export interface Output {
  readonly exit: number;
  readonly out: string[];
  readonly err: string[];
}

/** Runs a command line against a platform, without an API key in the environment. */
export async function runCommand(
  { platform, dataDir }: TestPlatform,
  args: readonly string[],
  changes: Readonly<Record<string, string>> = {},
): Promise<Output> {
  const out: string[] = [];
  const err: string[] = [];
  const exit = await runCli(args, {
    env: { WRIT_ADDRESS: platform.edgeUrl, WRIT_DATA: dataDir, ...changes },
    print: (line) => out.push(line),
    warn: (line) => err.push(line),
  });
  return { exit, out, err };
}
