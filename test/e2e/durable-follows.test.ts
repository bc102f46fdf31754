import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { createAgent } from '@writ/platform';
import { createModelSimulator } from '@writ/simulator';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { expect, it, onTestFinished } from 'vitest';
import { APPROVE_ALL } from './approve-all.ts';

const AGENTS = `
agents:
  - name: reader
    kind: personal-feed
    instructions: You read.
    model: { model: research }
    follow_topics: [tides]
    options: { max_items: 1, durable_follows: true }
`;
const publisher = createAgent({
  name: 'publisher',
  kind: 'custom',
  output_topic: 'tides',
  async run(operations, { goal }) {
    for (const text of goal.split(',')) await operations.emit({ text });
    return 'Published.';
  },
});

/**
 * Starts a model that repeats the item in its prompt, and returns a function that starts a platform on one data folder.
 */
async function createStart() {
  const model = await createModelSimulator({
    scripts: [
      {
        name: 'scripted',
        entries: ['first', 'second', 'third', 'fourth'].map((item) => ({
          when: { system_contains: 'You read', user_contains: `${item} tide` },
          reply: { text: `Read ${item}.` },
        })),
      },
    ],
  });
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-durable-'));
  onTestFinished(async () => {
    await model.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return async (): Promise<TestPlatform> => {
    const test = await startTestPlatform({
      dataDir,
      example: 'research-team',
      agents: [publisher],
      files: { WRIT_AGENTS_FILE: AGENTS, WRIT_POLICY_FILE: APPROVE_ALL },
      env: {
        OPENAI_BASE_URL: model.url,
        OPENAI_API_KEY: 'scripted',
        WRIT_SIMULATOR_URL: model.url,
        WRIT_SIMULATOR_KEY: 'scripted',
      },
    });
    onTestFinished(() => test.close());
    return test;
  };
}

const SESSION = 'ses_tides';

async function startReader({ client }: TestPlatform, requestId: string, sessionId = SESSION) {
  const request = { requestId, agent: 'reader', goal: 'A sailor.', sessionId };
  return (await client.runs.startRun(request)).run?.runId ?? '';
}

async function untilWaiting({ client }: TestPlatform, runId: string): Promise<void> {
  const state = async () => (await client.runs.getRun({ runId })).run?.state;
  await expect.poll(state).toBe(RunState.SUSPENDED);
}

async function publish(test: TestPlatform, items: string): Promise<void> {
  const request = { requestId: `publish-${items.slice(0, 5)}`, agent: 'publisher', goal: items };
  const runId = (await test.client.runs.startRun(request)).run?.runId ?? '';
  expect(await answerOf(test, runId)).toBe('Published.');
}

async function answerOf({ client: { runs } }: TestPlatform, runId: string) {
  await Array.fromAsync(runs.watchRun({ runId }));
  return (await runs.getRun({ runId })).run?.result?.answer;
}

it('a durable subscription keeps items for the next run in the session, across a restart of all services (AG-5, RT-3)', async () => {
  const start = await createStart();
  const first = await start();
  const before = await startReader(first, 'r-1');
  await untilWaiting(first, before);
  // The run ends after the first item and does not read the second; the third item is published after the end of the
  // run.
  await publish(first, 'first tide,second tide');
  expect(await answerOf(first, before)).toContain('Read first.');
  await publish(first, 'third tide');
  await first.close();

  const second = await start();
  // Another session does not continue the subscription.
  const other = await startReader(second, 'r-2', 'ses_other');
  await untilWaiting(second, other);
  expect(await answerOf(second, await startReader(second, 'r-3'))).toContain('Read second.');
  expect(await answerOf(second, await startReader(second, 'r-4'))).toContain('Read third.');
  // Each item is read only once, so the next run waits for a new item.
  const last = await startReader(second, 'r-5');
  await untilWaiting(second, last);
  await publish(second, 'fourth tide');
  expect(await answerOf(second, last)).toContain('Read fourth.');
  expect(await answerOf(second, other)).toContain('Read fourth.');
});
