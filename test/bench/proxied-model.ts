import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createWritClient } from '@writ/client';
import { newId } from '@writ/kernel';
import { COMPILE_CACHE } from '../load/program.ts';
import type { Work } from '../load/steps/count-work.ts';
import { peerModel, peerTool } from './peers/peer-model.ts';

const PLATFORM = fileURLToPath(new URL('../load/steps/platform-program.ts', import.meta.url));

/** Alias of the model, and its name at the provider. */
export const PROXIED_MODEL = 'no-op';

/** A model behind the agent-proxy of an embedded platform that runs in a separate process. */
export interface ProxiedModel {
  /** Base URL of the model endpoint, with `/v1`. */
  readonly baseUrl: string;
  /** Run token of an external agent without caps. */
  readonly token: string;
  /** Returns the work of the platform since its start; only with `countsWork`. */
  work(): Promise<Work>;
  close(): Promise<void>;
}

/** How a platform is started. */
interface ProxiedModelOptions {
  /** Flags of node. */
  readonly flags?: readonly string[];
  readonly countsWork?: boolean;
}

const filesFor = (modelUrl: string) => ({
  agents: {
    agents: [{ name: 'two', kind: 'external', model: { model: PROXIED_MODEL } }],
  },
  policy: {
    policy: 'two',
    rules: [{ id: 'tools', match: { tool: '*' }, decide: 'block', reason: 'none', risk: 5 }],
  },
  tools: {
    tools: [peerTool({ type: 'object', properties: {} })],
    sources: {
      bench: {
        kind: 'local',
        module: fileURLToPath(new URL('peers/writ-tool.ts', import.meta.url)),
      },
    },
  },
  models: {
    models: { [PROXIED_MODEL]: peerModel(PROXIED_MODEL, modelUrl) },
  },
});

/**
 * Starts a platform that forwards to a model, and starts a run of an external agent on it.
 * @param folder an empty folder
 */
export async function startProxiedModel(
  folder: string,
  modelUrl: string,
  { flags = [], countsWork = false }: ProxiedModelOptions = {},
): Promise<ProxiedModel> {
  for (const [name, content] of Object.entries(filesFor(modelUrl))) {
    writeFileSync(join(folder, `${name}.yaml`), JSON.stringify(content));
  }
  const env = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    STEPS_FOLDER: folder,
    PEER_KEY: 'none',
    WRIT_LOG_LEVEL: 'error',
    ...(countsWork && { STEPS_WORK: '1' }),
  };
  const platform = fork(PLATFORM, { env, execArgv: [...flags] });
  const ended = once(platform, 'exit');
  const failed = ended.then(([code]) => {
    throw new Error(`The platform exited with ${code}.`);
  });
  const started = once(platform, 'message') as Promise<[{ edgeUrl: string; apiKey: string }]>;
  const [{ edgeUrl, apiKey }] = await Promise.race([started, failed]);
  // From here on, the exit of the process is expected and no longer an error.
  failed.catch(() => undefined);
  const { runs } = createWritClient({ baseUrl: edgeUrl, apiKey });
  const start = { requestId: newId('req'), agent: 'two', goal: 'What is the answer?' };
  const { run } = await runs.startRun(start);
  const { token, modelBaseUrl: baseUrl } = await runs.issueRunToken({ runId: run?.runId ?? '' });
  await delivered(baseUrl, token);
  return {
    baseUrl,
    token,
    async work() {
      platform.send('work');
      const [{ work }] = (await once(platform, 'message')) as [{ readonly work: Work }];
      return work;
    },
    async close() {
      platform.kill('SIGTERM');
      await ended;
    },
  };
}

/** Waits until the run is delivered; agent-proxy answers 503 until then. */
async function delivered(baseUrl: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const until = performance.now() + 60_000;
  for (;;) {
    const { status } = await fetch(`${baseUrl}/models`, { headers });
    if (status === 200) return;
    if (performance.now() > until) throw new Error(`agent-proxy answered ${status} for a minute.`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
