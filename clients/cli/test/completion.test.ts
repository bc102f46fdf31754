import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';

async function script(shell: string): Promise<string> {
  const out: string[] = [];
  const io = { env: {}, print: (line: string) => out.push(line), warn: () => undefined };
  expect(await runCli(['completion', shell], io)).toBe(0);
  return out.join('\n');
}

/** Returns the completions that bash offers for the last of these words. */
async function completed(...words: string[]): Promise<string[]> {
  const run = [
    await script('bash'),
    `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})`,
    `COMP_CWORD=${words.length - 1}`,
    '_writ',
    `printf '%s\\n' "\${COMPREPLY[@]}"`,
  ];
  const options = { input: run.join('\n'), encoding: 'utf8' } as const;
  return execFileSync('bash', ['--norc'], options).split('\n').filter(Boolean);
}

it('completes commands, subcommands, options and option values in bash (PE-2)', async () => {
  expect(await completed('writ', 'app')).toEqual(['approvals']);
  expect(await completed('writ', 'halts', '')).toEqual(
    expect.arrayContaining(['create', 'lift', 'list', '--help']),
  );
  expect(await completed('writ', 'halts', 'create', '--ev')).toEqual(['--everything']);
  expect(await completed('writ', 'runs', 'list', '-o', '')).toEqual(['text', 'json', 'yaml']);
  // After the value of an option, bash offers the options of the command again.
  expect(await completed('writ', 'runs', 'list', '-o', 'json', '--st')).toEqual(['--state']);
  expect(await completed('writ', 'completion', 'z')).toEqual(['zsh']);
});

it.each(['bash', 'zsh', 'fish'])(
  'prints a completion script for %s with the subcommands (PE-2)',
  async (shell) => {
    const text = await script(shell);
    for (const path of ['writ runs list', 'writ halts lift', 'writ policy explain', 'writ doctor'])
      expect(text).toContain(path);
    expect(text).toContain('everything');
  },
);

it('rejects a shell without a script (PE-2)', async () => {
  const err: string[] = [];
  const io = { env: {}, print: () => undefined, warn: (line: string) => err.push(line) };
  expect(await runCli(['completion', 'tcsh'], io)).toBe(2);
  expect(err.join()).toContain('Allowed choices are bash, zsh, fish.');
});
