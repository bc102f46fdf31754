import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../src/cli.ts';

const EXAMPLES = new URL('../../../examples', import.meta.url).pathname;
const REFUND_DESK = join(EXAMPLES, 'refund-desk');
const TOOLS = join(REFUND_DESK, 'tools.yaml');

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

  it('test: passes every row of refund-desk, at least sixty (SV-3, SV-4)', async () => {
    const { exit, out } = await writ('test', REFUND_DESK);
    expect(exit).toBe(0);
    expect(out).toHaveLength(1);
    const [, passed, all] =
      /^(\d+) of (\d+) rows pass under policy refund-desk/.exec(out[0] ?? '') ?? [];
    expect(passed).toBe(all);
    expect(Number(all)).toBeGreaterThanOrEqual(60);
  });

  for (const example of ['research-team', 'news-feed', 'nightly-flow']) {
    it(`test: passes every row of ${example} (SV-3)`, async () => {
      const { exit, out } = await writ('test', join(EXAMPLES, example));
      expect(exit, out.join('\n')).toBe(0);
      expect(out).toHaveLength(1);
    });
  }

  it('test: reports differences by file and line and exits with 1, or with 2 without a table (SV-3)', async () => {
    expect(await writ('test', folder)).toMatchObject({ exit: 2 });
    await writeFile(
      join(folder, 'policy-tests.yaml'),
      'rows:\n  - { name: a large one, action: { tool: issue_refund, args: { amount_usd: 11 } }, expect: { decision: approve } }\n',
    );
    const { exit, out } = await writ('test', folder);
    expect(exit).toBe(1);
    expect(out[0]).toBe(`${join(folder, 'policy-tests.yaml')}:2: a large one`);
    expect(out[1]).toContain('decision is escalate, expected approve.');
    expect(out[2]).toContain('0 of 1 rows pass');
  });

  it('check: reports a wrong tool argument by file, line and column, and a missing file (SV-3)', async () => {
    const typo = join(folder, 'typo.yaml');
    expect((await writ('check', typo)).exit).toBe(0);
    const { exit, err } = await writ('check', typo, '--tools', TOOLS);
    expect(exit).toBe(1);
    expect(err).toContain(`${typo}:5:11: rules[0].when: args.amout_usd does not exist`);
    expect(await writ('check', join(folder, 'none.yaml'))).toMatchObject({
      exit: 2,
      err: expect.stringContaining('cannot be read (ENOENT)'),
    });
  });

  it('explain: prints the deciding rule and the reasons of earlier rules, pass by pass (SV-3, SV-10)', async () => {
    const action =
      '{"tool":"issue_refund","args":{"user_id":42,"amount_usd":2500,"reason":"Late."}}';
    const { exit, out } = await writ(
      'explain',
      join(REFUND_DESK, 'policy.yaml'),
      '--action',
      action,
    );
    expect(exit).toBe(0);
    expect(out.filter((line) => line.startsWith('Pass'))).toEqual(['Pass 1:', 'Pass 2:']);
    expect(out.find((line) => line.includes(' context: '))).toContain(
      'no match (tool is issue_refund)',
    );
    expect(out).toContain('revised arguments: {"amount_usd":2000,"reason":"Late.","user_id":42}');
    expect(out.at(-2)).toContain('refund-needs-a-person: decided');
    expect(out.at(-1)).toContain('escalate: high_refund_requires_human');
    const bad = await writ('explain', join(REFUND_DESK, 'policy.yaml'), '--action', '[]');
    expect(bad).toMatchObject({ exit: 2, err: '--action must be a JSON object.' });
  });
});
