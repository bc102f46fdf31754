/**
 * Type-checks the TypeScript examples of doc comments, README files and docs. An example is a fenced block marked `ts`;
 * in a Markdown page, a block without imports is a fragment and is not checked.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CommandResult, runCommand } from '../run-command.ts';

/** One example as a module. */
export interface Example {
  /** Path of the file that contains the example. */
  readonly file: string;
  /** Line of its first line of code in that file, from 1. */
  readonly line: number;
  /** The code, preceded by blank lines so that its line numbers are those of the file. */
  readonly code: string;
}

const FENCE = /^\s*(?:\* ?)?```(\w*)\s*$/;

/** Returns the examples in the text of a TypeScript or Markdown file. */
export function examplesIn(file: string, text: string): readonly Example[] {
  const isPage = file.endsWith('.md');
  return blocksIn(text, isPage ? /^/ : /^\s*\* ?/)
    .filter(({ lines }) => !isPage || lines.some((each) => /^import\b/.test(each)))
    .map(({ line, lines }) => ({ file, line, code: '\n'.repeat(line - 1) + lines.join('\n') }));
}

function blocksIn(text: string, prefix: RegExp) {
  const blocks: { line: number; lines: string[] }[] = [];
  let open: { line: number; lines: string[] } | undefined;
  let isOther = false;
  for (const [index, each] of text.split('\n').entries()) {
    const language = FENCE.exec(each)?.[1];
    if (language === undefined) open?.lines.push(each.replace(prefix, ''));
    else if (open !== undefined) {
      blocks.push(open);
      open = undefined;
    } else if (isOther) isOther = false;
    else if (language === 'ts') open = { line: index + 2, lines: [] };
    else isOther = true;
  }
  return blocks;
}

/** Type-checks examples with the settings of the repository; the output names files and lines of the repository. */
export async function checkExamples(examples: readonly Example[]): Promise<CommandResult> {
  mkdirSync('node_modules/.cache', { recursive: true });
  const folder = mkdtempSync('node_modules/.cache/examples-');
  try {
    const names = new Map(
      examples.map((example) => [
        `${example.file.replaceAll('/', '__')}__${example.line}.mts`,
        example,
      ]),
    );
    for (const [name, { code }] of names)
      writeFileSync(join(folder, name), `${code}\nexport {};\n`);
    // Examples import packages as they are published; the paths map them to the sources.
    const paths = {
      '@writ/testing': ['../../../libs/testing/src/public.ts'],
      writ: ['../../../clients/cli/src/index.ts'],
    };
    const config = {
      extends: '../../../tsconfig.json',
      compilerOptions: { paths },
      include: ['*.mts'],
      exclude: [],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const { code, output } = await runCommand('tsc', '--pretty', 'false', '-p', folder);
    const named = output.replace(/^\S*?([^/\s]+\.mts)(?=\()/gm, (found, name: string) => {
      return names.get(name)?.file ?? found;
    });
    return { code, output: named };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns all examples of the repository. */
export function allExamples(): readonly Example[] {
  const listed = execFileSync('git', ['ls-files', '*.ts', '*.md'], { encoding: 'utf8' });
  return listed
    .split('\n')
    .filter((file) => file !== '' && !/^(vendor|libs\/contracts\/gen)\/|\.test\.ts$/.test(file))
    .flatMap((file) => examplesIn(file, readFileSync(file, 'utf8')));
}
