import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';

const EXAMPLES = new URL('../../../examples', import.meta.url).pathname;
const DESK = join(EXAMPLES, 'refund-desk');
const TOOLS = join(DESK, 'tools.yaml');

const POLICY = `policy: small
rules:
  - id: large
    match: { tool: issue_refund }
    when: args.amount_usd > 10.0
    decide: escalate
    reason: large
`;

async function writ(...args: readonly string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const exit = await runCli(['policy', ...args], {
    env: {},
    print: (line) => out.push(line),
    warn: (line) => err.push(line),
  });
  return { exit, out, err: err.join('\n') };
}

describe('writ policy', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'writ-cli-'));
    await writeFile(join(folder, 'policy.yaml'), POLICY);
    await writeFile(join(folder, 'typo.yaml'), POLICY.replace('amount_usd', 'amout_usd'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('test: every row of the refund desk holds, and there are at least sixty (SV-3, SV-4)', async () => {
    const { exit, out } = await writ('test', DESK);
    expect(exit).toBe(0);
    expect(out).toHaveLength(1);
    const [, held, all] =
      /^(\d+) of (\d+) rows hold under policy refund-desk/.exec(out[0] ?? '') ?? [];
    expect(held).toBe(all);
    expect(Number(all)).toBeGreaterThanOrEqual(60);
  });

  for (const example of ['research-team', 'news-feed', 'nightly-flow']) {
    it(`test: every row of ${example} holds (SV-3)`, async () => {
      const { exit, out } = await writ('test', join(EXAMPLES, example));
      expect(exit, out.join('\n')).toBe(0);
      expect(out).toHaveLength(1);
    });
  }

  it('test: says by file and line what differs, and exits with 1; with 2 when there is no table (SV-3)', async () => {
    expect(await writ('test', folder)).toMatchObject({ exit: 2 });
    await writeFile(
      join(folder, 'policy-tests.yaml'),
      'rows:\n  - { name: a large one, action: { tool: issue_refund, args: { amount_usd: 11 } }, expect: { decision: approve } }\n',
    );
    const { exit, out } = await writ('test', folder);
    expect(exit).toBe(1);
    expect(out[0]).toBe(`${join(folder, 'policy-tests.yaml')}:2: a large one`);
    expect(out[1]).toContain('decision is escalate, expected approve.');
    expect(out[2]).toContain('0 of 1 rows hold');
  });

  it('check: names a mistake by file, line and column, also one that only the tools show (SV-3)', async () => {
    const typo = join(folder, 'typo.yaml');
    expect((await writ('check', typo)).exit).toBe(0);
    const { exit, err } = await writ('check', typo, '--tools', TOOLS);
    expect(exit).toBe(1);
    expect(err).toContain(`${typo}:5:11: rules[0].when: no args.amout_usd`);
    expect(await writ('check', join(folder, 'none.yaml'))).toMatchObject({
      exit: 2,
      err: expect.stringContaining('cannot be read (ENOENT)'),
    });
  });

  it('explain: says which rule decided and why each one before it did not, pass by pass (SV-3, SV-10)', async () => {
    const action =
      '{"tool":"issue_refund","args":{"user_id":42,"amount_usd":2500,"reason":"Late."}}';
    const { exit, out } = await writ('explain', join(DESK, 'policy.yaml'), '--action', action);
    expect(exit).toBe(0);
    expect(out.filter((line) => line.startsWith('Pass'))).toEqual(['Pass 1:', 'Pass 2:']);
    expect(out.find((line) => line.includes(' context: '))).toContain(
      'no match (tool is issue_refund)',
    );
    expect(out).toContain('revised arguments: {"amount_usd":2000,"reason":"Late.","user_id":42}');
    expect(out.at(-2)).toContain('refund-needs-a-person: decided');
    expect(out.at(-1)).toContain('escalate: high_refund_requires_human');
    const bad = await writ('explain', join(DESK, 'policy.yaml'), '--action', '[]');
    expect(bad).toMatchObject({ exit: 2, err: '--action must be a JSON object.' });
  });
});
