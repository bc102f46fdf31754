import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createProgram, runCli } from '../src/cli.ts';

type Command = ReturnType<typeof createProgram>;

/** Commands without `--output`, each with the reason. */
const WITHOUT: Readonly<Record<string, string>> = {
  'writ init': 'writes files and prints the next commands for a person',
  'writ dev': 'runs a platform until Ctrl-C and prints its log',
  'writ audit export': 'its output is JSON lines',
  'writ audit keys': 'its output is a JSON Web Key Set',
  'writ keys revoke': 'prints nothing',
  'writ observe': 'appends the events as JSON lines to the files of --logs',
  'writ completion': 'its output is a shell script',
};

const REFUND_DESK = new URL('../../../examples/refund-desk', import.meta.url).pathname;
const TEMPLATE = new URL('../template', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'writ-output-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('accepts --output in every command that prints data (PE-2)', () => {
  const io = { env: {}, print: () => undefined, warn: () => undefined };
  const leaves = leavesOf(createProgram(io, () => undefined));
  const without = leaves.filter(({ options }) => !options.some(({ long }) => long === '--output'));
  expect(leaves.length).toBeGreaterThan(40);
  expect(without.map(pathOf).sort()).toEqual(Object.keys(WITHOUT).sort());
});

const TYPO = join(folder, 'typo.yaml');
writeFileSync(
  TYPO,
  'policy: small\nrules:\n  - id: one\n    when: arg.x > 1\n    decide: approve\n    reason: small\n',
);
const ACTION = '{"tool":"issue_refund","args":{"user_id":42,"amount_usd":5,"reason":"Late."}}';
const KEY = ['keys', 'create', '--tenant', 'acme', '--subject', 'ada', '--role', 'caller'];

it.each([
  [0, KEY, { key: expect.any(String), roles: ['caller'] }],
  [0, ['keys', 'list'], { keys: [expect.objectContaining({ subject: 'ada' })] }],
  [
    0,
    ['certs', join(folder, 'tls')],
    { certificates: expect.arrayContaining([expect.objectContaining({ name: 'supervisor' })]) },
  ],
  [0, ['doctor', TEMPLATE, '--no-platform'], { findings: expect.any(Array) }],
  [
    0,
    ['policy', 'check', join(REFUND_DESK, 'policy.yaml')],
    { policy: 'refund-desk', problems: [] },
  ],
  [1, ['policy', 'check', TYPO], { problems: [expect.objectContaining({ line: 4 })] }],
  [0, ['policy', 'test', REFUND_DESK], { policy: 'refund-desk', results: [] }],
  [
    0,
    ['policy', 'explain', join(REFUND_DESK, 'policy.yaml'), '--action', ACTION],
    {
      verdict: expect.any(String),
      passes: [expect.objectContaining({ rules: expect.any(Array) })],
    },
  ],
  [0, ['recover'], { stores: [], next: expect.stringContaining('Nothing to recover') }],
])(
  'prints data as JSON and as YAML, with exit code %i: %j (PE-2)',
  async (exit, args, expected) => {
    const json = await output(exit, [...args, '-o', 'json']);
    expect(JSON.parse(json)).toMatchObject(expected);
    const again = args[0] === 'certs' ? [...args, '--renew'] : args;
    if (args !== KEY)
      expect(parse(await output(exit, [...again, '-o', 'yaml']))).toMatchObject(expected);
  },
);

async function output(exit: number, args: readonly string[]): Promise<string> {
  const out: string[] = [];
  const io = {
    env: { WRIT_DATA: folder },
    print: (line: string) => out.push(line),
    warn: () => undefined,
  };
  expect(await runCli(args, io)).toBe(exit);
  return out.join('\n');
}

function leavesOf(command: Command): readonly Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
