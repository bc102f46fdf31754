import { resolve } from 'node:path';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { startTestPlatform, type TestPlatform } from '@writ/testing/platform';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { APPROVE_ALL } from './approve-all.ts';

const KERNEL = resolve(import.meta.dirname, '../../libs/kernel/src/index.ts');

/** A lead waits for a person and for a timer that is longer than the active-time limit of any agent. */
const AGENTS = `
agents:
  - name: lead
    kind: flow
    budget: { max_seconds: 4 }
    sub_agents: [{ name: person }, { name: sleeper }]
    options: { steps: [{ parallel: [person, sleeper] }] }
  - { name: person, kind: user-proxy, budget: { max_seconds: 4 } }
  - { name: sleeper, kind: custom, budget: { max_seconds: 4 } }
`;
const MODULE = `
import { defineAgent } from ${JSON.stringify(KERNEL)};
export const agents = [defineAgent({
  name: 'sleeper',
  async run(agent) {
    await agent.sleep(6_000);
    return 'Slept.';
  },
})];
`;

let world: TestPlatform;
beforeAll(async () => {
  world = await startTestPlatform({
    files: { WRIT_AGENTS_FILE: AGENTS, WRIT_POLICY_FILE: APPROVE_ALL, WRIT_AGENT_MODULES: MODULE },
  });
});
afterAll(() => world.close());

it('a run that waits longer than its active time for a person, a timer and its children continues, and shows that it waits (EM-1, AG-4, AG-7)', async () => {
  const { runs } = world.client;
  const started = await runs.startRun({ requestId: 'r-1', agent: 'lead', goal: 'Which colour?' });
  const runId = started.run?.runId ?? '';
  let asked = { agentInstance: '', name: '' };
  for await (const { event } of runs.watchRun({ runId })) {
    if (event?.entry.case !== 'hook') continue;
    const { type, agent, waitingFor: name } = event.entry.value;
    if (type !== HookEventType.STEP_START || agent?.name !== 'person') continue;
    asked = { agentInstance: agent.instance, name };
    break;
  }
  const state = async () => (await runs.getRun({ runId })).run?.state;
  await expect.poll(state).toBe(RunState.WAITING_FOR_INPUT);
  const { runs: listed } = await runs.listRuns({ states: [RunState.WAITING_FOR_INPUT] });
  expect(listed.map((run) => run.runId)).toEqual([runId]);
  await runs.signalRun({ runId, ...asked, requestId: 's-1', payloadJson: '{"text":"Blue."}' });
  // The other child still sleeps.
  await expect.poll(state).toBe(RunState.SUSPENDED);
  await Array.fromAsync(runs.watchRun({ runId }));
  const { run } = await runs.getRun({ runId });
  expect(run?.result?.stopReason).toBe('success');
  expect(run?.result?.answer).toBe('person: Blue.\n\nsleeper: Slept.');
});
