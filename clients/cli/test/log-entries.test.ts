import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from './command.ts';

describe('writ runs logs', () => {
  let test: TestPlatform;
  beforeAll(async () => {
    const files = { WRIT_AGENTS_FILE: 'agents:\n  - { name: person, kind: user-proxy }\n' };
    test = await startTestPlatform({ files });
  });
  afterAll(() => test.close());

  const writ = (...args: readonly string[]) => runCommand(test, args);

  it('shows the question that an agent asked a person, and the signal that it waits for (AG-4)', async () => {
    const { out } = await writ('run', 'person', 'Which colour?', '--detach', '-o', 'json');
    const { runId } = JSON.parse(out.join('\n'));
    await expect.poll(async () => (await writ('runs', 'logs', runId)).out.length).toBe(2);
    const [heading, entry] = (await writ('runs', 'logs', runId)).out;
    expect(heading).toMatch(/^TIME +AGENT +ENTRY +FIELDS +CONTENT$/);
    expect(entry).toMatch(/ person +hitl\.question +\{.*"Which colour\?"/);
    const agents = await writ('runs', 'agents', runId);
    expect(agents.out[1]).toMatch(/ human_reply:/);
    const none = await writ('runs', 'logs', runId, '--agent', 'other');
    expect(none).toEqual({ exit: 0, out: [], err: ['No log entries.'] });
    await writ('runs', 'cancel', runId, '--reason', 'Asked enough.');
  });
});
