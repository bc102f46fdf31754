import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WritClient } from '@writ/client';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { APPROVE_ALL } from './approve-all.ts';
import { type ServedPlatform, servePlatform } from './served-platform.ts';

const AGENTS = `
agents:
  - name: deal
    kind: flow
    sub_agents: [{ name: notary }, { name: buyer }, { name: seller }]
    options: { steps: [notary, { parallel: [buyer, seller] }] }
  - { name: buyer, kind: user-proxy }
  - { name: seller, kind: user-proxy }
  - { name: notary, kind: user-proxy }
`;

/** A question to a human. */
interface Asked {
  readonly runId: string;
  readonly agentInstance: string;
  /** The signal that the agent waits for. */
  readonly name: string;
}

let dataDir: string;
let platform: ServedPlatform;

function serve(): Promise<ServedPlatform> {
  return servePlatform(dataDir, 'refund-desk', {
    WRIT_AGENTS_FILE: join(dataDir, 'agents.yaml'),
    WRIT_POLICY_FILE: join(dataDir, 'policy.yaml'),
  });
}

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'writ-people-'));
  writeFileSync(join(dataDir, 'agents.yaml'), AGENTS);
  writeFileSync(join(dataDir, 'policy.yaml'), APPROVE_ALL);
  platform = await serve();
});
afterAll(async () => {
  await platform.kill();
  rmSync(dataDir, { recursive: true, force: true });
});

async function start({ runs }: WritClient, requestId: string): Promise<string> {
  const { run } = await runs.startRun({ requestId, agent: 'deal', goal: 'Do you agree?' });
  return run?.runId ?? '';
}

/** Waits until a run asks all of these humans; returns their questions by name. */
async function untilAsked({ runs }: WritClient, runId: string, ...names: string[]) {
  const asked = new Map<string, Asked>();
  for await (const { event } of runs.watchRun({ runId })) {
    if (event?.entry.case !== 'hook') continue;
    const { type, agent, waitingFor: name } = event.entry.value;
    if (type !== HookEventType.STEP_START || agent === undefined) continue;
    if (!name.startsWith('human_reply:')) continue;
    asked.set(agent.name, { runId, agentInstance: agent.instance, name });
    if (names.every((one) => asked.has(one))) break;
  }
  return (name: string): Asked => asked.get(name) ?? { runId, agentInstance: '', name: '' };
}

async function answer({ runs }: WritClient, asked: Asked, text: string): Promise<void> {
  const requestId = `answer-${asked.agentInstance}-${asked.name.split(':')[1]}`;
  await runs.signalRun({ ...asked, requestId, payloadJson: JSON.stringify({ text }) });
}

it('delivers human replies to the branch and run that asked, even after kill -9 (AG-4, RT-3, RT-1)', async () => {
  const before = platform.client;
  const [first, second] = [await start(before, 'first'), await start(before, 'second')];
  for (const runId of [first, second]) {
    const asked = await untilAsked(before, runId, 'notary');
    await answer(before, asked('notary'), 'Begin.');
  }
  const ofFirst = await untilAsked(before, first, 'buyer', 'seller');
  const ofSecond = await untilAsked(before, second, 'buyer', 'seller');
  await platform.kill();
  platform = await serve();

  // A reply that names the question of the other run is not delivered in this run.
  await answer(platform.client, { ...ofFirst('buyer'), name: ofSecond('buyer').name }, 'Whose?');
  await answer(platform.client, ofSecond('seller'), 'second seller');
  await answer(platform.client, ofFirst('seller'), 'first seller');
  await platform.kill();
  platform = await serve();
  await answer(platform.client, ofSecond('buyer'), 'second buyer');
  await answer(platform.client, ofFirst('buyer'), 'first buyer');

  const { runs } = platform.client;
  for (const [runId, name] of [
    [first, 'first'],
    [second, 'second'],
  ] as const) {
    await Array.fromAsync(runs.watchRun({ runId }));
    const { run } = await runs.getRun({ runId });
    expect(run?.state).toBe(RunState.COMPLETED);
    expect(run?.result?.answer).toBe(`buyer: ${name} buyer\n\nseller: ${name} seller`);
  }
});
