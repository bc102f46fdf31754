import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { type RunEvent, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { expect, it, onTestFinished } from 'vitest';
import { APPROVE_ALL } from './approve-all.ts';

const KERNEL = resolve(import.meta.dirname, '../../libs/kernel/src/index.ts');
const AGENTS = `
agents:
  - { name: clerk, kind: custom, budget: { max_seconds: 30 } }
`;

/** A module whose agent logs a word, waits for a signal and answers with the word. */
function moduleWith(word: string): string {
  return `
import { defineAgent } from ${JSON.stringify(KERNEL)};
export const agents = [defineAgent({
  name: 'clerk',
  async run(agent) {
    agent.log('${word}');
    await agent.sleepUntilSignal('go');
    return '${word}';
  },
})];
`;
}

it('parks a run whose agent code has changed, shows how to resume it, and resumes it with the previous code (RT-1, AG-7, BD-6)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-code-waits-'));
  let world: TestPlatform | undefined;
  onTestFinished(async () => {
    await world?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const start = async (word: string): Promise<TestPlatform> => {
    await world?.close();
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    world = await startTestPlatform({
      dataDir: join(folder, 'data'),
      env: {
        WRIT_AGENTS_FILE: file('agents.yaml', AGENTS),
        WRIT_POLICY_FILE: file('policy.yaml', APPROVE_ALL),
        WRIT_AGENT_MODULES: file(`${word}.ts`, moduleWith(word)),
      },
    });
    return world;
  };

  const before = await start('old');
  const { run } = await before.client.runs.startRun({
    requestId: 'req-1',
    agent: 'clerk',
    goal: 'Wait.',
  });
  const runId = run?.runId ?? '';
  const runOf = async ({ client }: TestPlatform) => (await client.runs.getRun({ runId })).run;
  await expect.poll(async () => (await runOf(before))?.state).toBe(RunState.SUSPENDED);
  expect((await runOf(before))?.waitingDetail).toBe('');

  const changed = await start('new');
  const agentInstance = run?.agent?.instance ?? '';
  await changed.client.runs.signalRun({ requestId: 's-1', runId, agentInstance, name: 'go' });
  const detail = `Agent ${agentInstance} waits for the code with which it started: the code of the worker differs from what the agent did at op-0. Start a worker with the previous code, or cancel the run.`;
  await expect.poll(async () => (await runOf(changed))?.waitingDetail).toBe(detail);
  expect((await runOf(changed))?.state).toBe(RunState.SUSPENDED);

  const old = await start('old');
  const events: RunEvent[] = [];
  for await (const { event } of old.client.runs.watchRun({ runId })) if (event) events.push(event);
  const waits = events.flatMap(({ entry }) =>
    entry.case === 'hook' && entry.value.type === HookEventType.AGENT_SUSPENDED
      ? [entry.value.waitingFor]
      : [],
  );
  expect(new Set(waits)).toEqual(new Set(['code:journal_divergence:op-0']));
  const ended = await runOf(old);
  expect(ended?.result?.answer).toBe('old');
  expect(ended?.waitingDetail).toBe('');
});
