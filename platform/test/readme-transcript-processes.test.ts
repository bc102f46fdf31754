import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { Program } from './program.ts';

const MAIN = resolve(import.meta.dirname, '../src/main.ts');
const README = resolve(import.meta.dirname, '../../README.md');

const CONSOLE = resolve(import.meta.dirname, '../../clients/console/dist/index.html');

/**
 * The lines of the transcript in the README, which ends with the line `time: …`. The line with the address of the
 * console is printed only if the console is built.
 */
function documented(): string[] {
  const [, block = ''] = /```text\n(Writ is up:[^`]*)```/.exec(readFileSync(README, 'utf8')) ?? [];
  const lines = block.trimEnd().split('\n');
  return existsSync(CONSOLE) ? lines : lines.filter((line) => !line.startsWith('console '));
}

/** Replaces the values that differ between runs: durations, costs, token counts, ports and folders. */
function withoutValues(line: string): string {
  return line
    .replace(/\d+ ms/g, 'N ms')
    .replace(/\d+\.\d+ (USD|s\b)/g, 'N $1')
    .replace(/\d+ tokens/g, 'N tokens')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:N')
    .replace(/data in \S+,/g, 'data in N,')
    .replace(/also in \S+/g, 'also in N');
}

/** Returns a regular expression for a documented line, in which … matches any text. */
function patternOf(line: string): string {
  const parts = withoutValues(line).split('…');
  return parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*');
}

it('npm start prints the transcript of the README, in this order (SYS-5, HK-1)', async () => {
  // One pipe for both streams, as a terminal shows them.
  const args = ['-c', 'exec "$0" "$@" 2>&1', process.execPath, MAIN, '--human', 'ask'];
  const program = new Program('sh', args, { input: '900\n800\n' });
  const printed = (await program.printed(/^time: .*$/m)).split('\n').map(withoutValues);
  const expected = documented();
  expect(expected.length).toBeGreaterThan(30);
  // The line `…` of the transcript replaces the seven lines with the addresses of the services.
  const at = expected.indexOf('…');
  expected.splice(at, 1, ...printed.slice(at, at + 7));
  const shown = printed.slice(0, expected.length);
  expect(shown).toEqual(
    expected.map((line) => expect.stringMatching(new RegExp(`^${patternOf(line)}$`))),
  );
});
