import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JsonObject, UnavailableError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openPolicy } from './policy-file.ts';

const policyOf = (condition: string) => `policy: payments
rules:
  - id: large
    match: { tool: pay }
    when: ${condition}
    decide: escalate
    reason: large
  - { id: answer, match: { kind: final }, decide: approve, reason: answer }
`;
const GOOD = policyOf('args.amount > 10.0');
const WRONG = policyOf('args.amout > 10.0');
const PAY: JsonObject = { type: 'object', properties: { amount: { type: 'number' } } };
const up = { toolSchemas: async () => ({ pay: PAY }) };
const unreachable = {
  async toolSchemas(): Promise<never> {
    throw new UnavailableError('TOOL_LIST_UNAVAILABLE', 'Unreachable.');
  },
};

describe('policy file', () => {
  let folder: string;
  let file: string;
  let lines: string[];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'writ-policy-'));
    file = join(folder, 'policy.yaml');
    lines = [];
  });
  afterEach(() => rm(folder, { recursive: true }));

  const open = async (text: string) => {
    await writeFile(file, text);
    const { log } = createTelemetry({
      service: 'supervisor',
      logStream: { write: (line: string) => lines.push(line) },
    });
    return await openPolicy(file, log);
  };

  it('is checked against the tools once, when the gateway first answers (SV-3)', async () => {
    const rules = await open(WRONG);
    await rules.look(unreachable);
    expect(lines).toEqual([]);
    await rules.look(up);
    await rules.look(up);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`${file}:5:`);
    expect(lines[0]).toContain('amout');
  });

  it('replaces the policy, with a new version, when it changes (SV-3)', async () => {
    const rules = await open(GOOD);
    const before = rules.current;
    await rules.look(up);
    expect(rules.current).toBe(before);
    await writeFile(file, policyOf('args.amount > 20.0'));
    await rules.look(up);
    // The file may still be being written, so a change is applied only on the second read.
    expect(rules.current).toBe(before);
    await rules.look(up);
    expect(rules.current.version).not.toBe(before.version);
    expect(rules.current.rules[0]?.when?.source).toContain('20.0');
  });

  it.each([
    ['reads an argument that no tool has', WRONG, ':5:'],
    ['is not valid YAML', 'policy: [', ':1:'],
    ['has no rules', 'policy: payments\n', ':1:'],
  ])(
    'keeps the previous policy when the document %s, and logs the position (SV-3)',
    async (_, text, place) => {
      const rules = await open(GOOD);
      const before = rules.current;
      await writeFile(file, text);
      for (let look = 0; look < 4; look += 1) await rules.look(up);
      expect(rules.current).toBe(before);
      expect(lines.filter((line) => line.includes(`${file}${place}`)).length).toBeGreaterThan(0);
      expect(lines.filter((line) => line.includes('keeping the previous policy'))).toHaveLength(1);
      await writeFile(file, GOOD.replace('large', 'big'));
      for (let look = 0; look < 2; look += 1) await rules.look(up);
      expect(rules.current.rules[0]?.id).toBe('big');
    },
  );

  it('keeps the policy while the file is missing, and logs it once (SYS-4)', async () => {
    const rules = await open(GOOD);
    const before = rules.current;
    await rename(file, `${file}.away`);
    for (let look = 0; look < 3; look += 1) await rules.look(up);
    expect(rules.current).toBe(before);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('cannot be read (ENOENT)');
  });

  it('is loaded while no gateway answers, and checked when one does (SV-3)', async () => {
    const rules = await open(GOOD);
    await writeFile(file, WRONG);
    for (let look = 0; look < 3; look += 1) await rules.look(unreachable);
    expect(rules.current.rules[0]?.when?.source).toContain('amout');
    await rules.look(up);
    expect(lines.at(-1)).toContain('amout');
  });
});
