import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWritClient, type WritClient } from '@writ/client';
import { loadExample, openModelSource, readPlatformConfig, startPlatform } from '@writ/platform';
import type { Script } from '@writ/simulator';
import { APPROVE_ALL } from '../e2e/approve-all.ts';

const AGENTS = `
agents:
  - name: solo
    kind: react
    instructions: You are alone.
    model: &model { model: racer }
  - name: lead
    kind: orchestrator
    instructions: You lead.
    model: *model
    sub_agents: [{ name: minor }, { name: major }]
    spawn: { max_agents: 2 }
  - name: minor
    kind: react
    instructions: You are the minor one.
    model: *model
    priority: low
  - name: major
    kind: react
    instructions: You are the major one.
    model: *model
    priority: high
`;
const MODELS = `
models:
  racer:
    base_url: \${WRIT_SIMULATOR_URL}
    api_key_env: WRIT_SIMULATOR_KEY
    model: "sim:races"
    priced_as: gpt-4.1-mini
    context_window: 100000
    max_output_tokens: 1000
    timeout: 60s
    max_retries: 2
`;

/** The child `minor` is slow, so that `major` preempts its slot. */
const SCRIPT: Script = {
  name: 'races',
  entries: [
    { when: { system_contains: 'You are alone' }, reply: { text: 'Done.' } },
    {
      when: { system_contains: 'You lead', turn: 0 },
      reply: {
        tool_calls: [
          { name: 'handoff_minor', arguments: { task: 'Begin.' } },
          { name: 'handoff_major', arguments: { task: 'Push in.' } },
        ],
      },
    },
    { when: { system_contains: 'You lead' }, reply: { text: 'Both are done.' } },
    { when: { system_contains: 'the minor one' }, reply: { text: 'Done.', delay_ms: 100 } },
    { when: { system_contains: 'the major one' }, reply: { text: 'Done.' } },
  ],
};

/** A platform with short runs. */
export interface RacePlatform {
  readonly client: WritClient;
  readonly dataDir: string;
  /** Stops the platform; its data remains readable until {@link remove}. */
  stop(): Promise<void>;
  remove(): void;
}

/** Starts all services with a solo agent and a team in which one child preempts another. */
export async function startRacePlatform(): Promise<RacePlatform> {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-races-'));
  const write = (name: string, content: string): string => {
    const file = join(dataDir, name);
    writeFileSync(file, content);
    return file;
  };
  const env = {
    WRIT_LOG_LEVEL: 'silent',
    WRIT_AGENTS_FILE: write('agents.yaml', AGENTS),
    WRIT_POLICY_FILE: write('policy.yaml', APPROVE_ALL),
    WRIT_MODELS_FILE: write('models.yaml', MODELS),
  };
  const example = { ...loadExample('refund-desk'), scripts: [SCRIPT] };
  const model = await openModelSource(env, example, { script: SCRIPT.name, dataDir });
  const config = readPlatformConfig(env, { example, model, dataDir, freePorts: true });
  const platform = await startPlatform(config);
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    await platform.stop();
    await model.close();
  };
  return {
    client: createWritClient({ baseUrl: platform.edgeUrl, apiKey: platform.apiKey }),
    dataDir,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
    remove: () => rmSync(dataDir, { recursive: true, force: true }),
  };
}
