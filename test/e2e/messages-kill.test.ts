import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { WritClient } from '@writ/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { APPROVE_ALL } from './approve-all.ts';
import { type ServedPlatform, servePlatform } from './served-platform.ts';

const KERNEL = resolve(import.meta.dirname, '../../libs/kernel/src/index.ts');

const AGENTS = `
agents:
  - name: newsroom
    kind: information
    instructions: You run a newsroom. Sum up the item that you are given in one sentence.
    model: { model: sim-coast }
    options: { max_items: 3 }
  - { name: person, kind: user-proxy }
  - { name: clerk, kind: custom }
`;
/** The clerk starts to wait for notes only after the signal `open`. */
const MODULE = `
import { defineAgent } from ${JSON.stringify(KERNEL)};
export const agents = [defineAgent({
  name: 'clerk',
  async run(agent) {
    await agent.sleepUntilSignal('open');
    const notes = [];
    for (;;) {
      const { text } = await agent.sleepUntilSignal('note');
      if (text === 'end') return notes.join(', ');
      notes.push(text);
    }
  },
})];
`;

let dataDir: string;
let platform: ServedPlatform;

function serve(): Promise<ServedPlatform> {
  return servePlatform(dataDir, 'news-feed', {
    WRIT_AGENTS_FILE: join(dataDir, 'agents.yaml'),
    WRIT_POLICY_FILE: join(dataDir, 'policy.yaml'),
    WRIT_AGENT_MODULES: join(dataDir, 'clerk.ts'),
  });
}

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'writ-messages-'));
  writeFileSync(join(dataDir, 'agents.yaml'), AGENTS);
  writeFileSync(join(dataDir, 'policy.yaml'), APPROVE_ALL);
  writeFileSync(join(dataDir, 'clerk.ts'), MODULE);
  platform = await serve();
});
afterAll(async () => {
  await platform.kill();
  rmSync(dataDir, { recursive: true, force: true });
});

async function start({ runs }: WritClient, agent: string, goal: string): Promise<string> {
  const sessionId = `session-${agent}`;
  const { run } = await runs.startRun({ requestId: agent, agent, goal, sessionId });
  return run?.runId ?? '';
}

/** A message to the root of a run. */
interface Sent {
  readonly runId: string;
  readonly requestId: string;
  readonly name: string;
  readonly text: string;
}

/** Sends a message, with retries until its agent is delivered; returns whether the message was new. */
async function send({ runs }: WritClient, { text, ...signal }: Sent): Promise<boolean> {
  const request = { ...signal, payloadJson: JSON.stringify({ text }) };
  for (;;) {
    try {
      return (await runs.signalRun(request)).accepted;
    } catch (error) {
      if ((error as { reason?: string }).reason !== 'AGENT_NOT_DELIVERED') throw error;
    }
  }
}

it('delivers several messages to a running custom, feed and user-proxy agent once each and in order, after kill -9 (AG-4, AG-5, RT-3)', async () => {
  const before = platform.client;
  const newsroom = await start(before, 'newsroom', 'The ferry to the islands leaves at seven.');
  const clerk = await start(before, 'clerk', 'Collect notes.');
  const person = await start(before, 'person', 'Which colour?');
  const toNewsroom = (requestId: string, text: string) => {
    return { runId: newsroom, requestId, name: 'new_source_item', text };
  };
  const note = (requestId: string, text: string) => {
    return { runId: clerk, requestId, name: 'note', text };
  };
  const reply = (requestId: string, text: string) => {
    return { runId: person, requestId, name: 'human_reply:session-person', text };
  };
  const first = [
    toNewsroom('m-1', 'There is a regatta on Sunday.'),
    note('m-1', 'one'),
    note('m-2', 'two'),
  ];
  for (const message of first) expect(await send(before, message)).toBe(true);
  await platform.kill();
  platform = await serve();

  const after = platform.client;
  for (const message of first) expect(await send(after, message)).toBe(false);
  const second = [
    { runId: clerk, requestId: 'm-3', name: 'open', text: '' },
    note('m-4', 'three'),
    // A new message with the text of an earlier one.
    note('m-5', 'one'),
    note('m-6', 'end'),
    toNewsroom('m-2', 'A storm is expected.'),
    reply('m-1', 'Blue.'),
  ];
  for (const message of second) expect(await send(after, message)).toBe(true);

  const { runs } = after;
  const answers: (string | undefined)[] = [];
  for (const runId of [newsroom, clerk, person]) {
    await Array.fromAsync(runs.watchRun({ runId }));
    answers.push((await runs.getRun({ runId })).run?.result?.answer);
  }
  expect(answers).toEqual([
    [
      'From Monday the ferry to the islands leaves at seven instead of six.',
      "Forty boats start in Sunday's regatta at noon.",
      'A storm comes on Sunday night; boats should be in by six.',
    ].join('\n'),
    'one, two, three, one',
    'Blue.',
  ]);
  await expect(send(after, note('m-7', 'too late'))).rejects.toMatchObject({ reason: 'RUN_ENDED' });
});
