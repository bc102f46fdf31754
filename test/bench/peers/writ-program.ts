/** The run on an embedded platform with its defaults: metered, reviewed, single-use writs, durable, audited. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createWritClient } from '@writ/client';
import { newId } from '@writ/kernel';
import { peerModel, peerTool } from './peer-model.ts';
import { servePeer } from './serve-peer.ts';

const PLATFORM = fileURLToPath(new URL('../../load/steps/platform-program.ts', import.meta.url));
const folder = process.env.PEER_FOLDER ?? '';

const FILES = {
  agents: {
    agents: [
      {
        name: 'two',
        kind: 'react',
        instructions: 'You are a helpful agent.',
        model: { model: 'no-op' },
        tools: ['no_op'],
      },
    ],
  },
  policy: {
    policy: 'two',
    rules: [
      { id: 'no-op', match: { tool: 'no_op' }, decide: 'approve', reason: 'fine', risk: 5 },
      { id: 'final', match: { kind: 'final' }, decide: 'approve', reason: 'done', risk: 5 },
    ],
  },
  tools: {
    tools: [peerTool({ type: 'object', properties: { x: { type: 'string' } }, required: ['x'] })],
    sources: {
      bench: {
        kind: 'local',
        module: fileURLToPath(new URL('writ-tool.ts', import.meta.url)),
        max_in_flight: 256,
      },
    },
  },
  models: {
    models: { 'no-op': peerModel('no-op', process.env.PEER_MODEL_URL) },
  },
};

for (const [name, content] of Object.entries(FILES)) {
  writeFileSync(join(folder, `${name}.yaml`), JSON.stringify(content));
}
const { PATH, NODE_COMPILE_CACHE } = process.env;
const env = {
  PATH,
  NODE_COMPILE_CACHE,
  STEPS_FOLDER: folder,
  PEER_KEY: 'none',
  WRIT_LOG_LEVEL: 'error',
};
const platform = fork(PLATFORM, { env, execArgv: [] });
const started = once(platform, 'message') as Promise<[{ edgeUrl: string; apiKey: string }]>;
const ended = once(platform, 'exit').then(([code]) => {
  throw new Error(`The platform exited with ${code}.`);
});
const [{ edgeUrl: baseUrl, apiKey }] = await Promise.race([started, ended]);
const client = createWritClient({ baseUrl, apiKey });

servePeer(
  async () => {
    const start = { requestId: newId('req'), agent: 'two', goal: 'What is the answer?' };
    let answer: string | undefined;
    for await (const { event } of client.runs.runAgent({ start })) {
      if (event?.entry.case === 'result') answer = event.entry.value.answer;
    }
    return answer;
  },
  async () => {
    platform.kill('SIGTERM');
    await ended.catch(() => undefined);
  },
  async () => {
    const answered = once(platform, 'message') as Promise<[{ cpuMs: number }]>;
    platform.send('counters');
    const [{ cpuMs }] = await answered;
    return cpuMs;
  },
);
