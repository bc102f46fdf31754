import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';
import type { StartRunRequest } from '@writ/contracts/writ/run/v1/run_service_pb';
import { API_KEYS_FILE, apiKeyId, openApiKeys } from '@writ/identity';
import { newId } from '@writ/kernel';
import {
  startTestPlatform,
  type TestPlatform,
  type TestPlatformOptions,
} from '@writ/testing/platform';
import OpenAI from 'openai';
import { expect, onTestFinished, vi } from 'vitest';
import type { ScriptedModel } from './scripted-model.ts';

/** The model alias that the agents of these tests use; the provider knows the model by another name. */
export const ALIAS = 'support-model';

/** The alias of an Anthropic model. */
export const CLAUDE = 'claude-model';

/** The model catalog of these tests. */
export const proxyModels = ({ url }: ScriptedModel) => `
models:
  ${ALIAS}:
    base_url: "${url}"
    model: gpt-4.1-mini
    max_output_tokens: 100
    max_retries: 0
    prices: { input_per_million_usd: "10", output_per_million_usd: "100" }
  ${CLAUDE}:
    base_url: "${url}"
    api: anthropic
    api_key_env: WRIT_TEST_ANTHROPIC_KEY
    model: claude-opus-4-1
    max_output_tokens: 100
    max_retries: 0
    prices:
      input_per_million_usd: "10"
      cached_input_per_million_usd: "1"
      cache_write_per_million_usd: "12.5"
      cache_write_1h_per_million_usd: "20"
      output_per_million_usd: "100"
  other-model: { base_url: "${url}", model: gpt-4.1-mini }
`;

/** Agents of these tests. */
export const EXTERNAL_AGENTS = `
agents:
  - name: support-bot
    kind: external
    description: An agent of another framework.
    model: { model: ${ALIAS}, also_allowed: [${CLAUDE}] }
  - name: restless-bot
    kind: external
    model: { model: ${ALIAS} }
    options: { idle_timeout: 1s }
  - name: single-bot
    kind: external
    model: { model: ${ALIAS} }
    options: { max_open_runs: 1 }
  - name: capped-bot
    kind: external
    model: { model: ${ALIAS} }
    budget: { max_turns: 1, deadline: 1h }
  - name: reviewed-bot
    kind: external
    model: { model: ${ALIAS} }
    options: { client_tools: review }
  - name: inner-bot
    kind: react
    model: { model: ${ALIAS} }
`;

/** The provider key, which no external agent has. */
export const PROVIDER_KEY = 'sk-ant-of-the-provider';

/**
 * Starts a platform with a scripted model. `onLogLine` receives its warnings and errors; without `onLogLine`, they are
 * not logged.
 */
export async function proxyPlatform(
  model: ScriptedModel,
  files: TestPlatformOptions['files'] = {},
  onLogLine?: (line: string) => void,
): Promise<TestPlatform> {
  const test = await startTestPlatform({
    env: { WRIT_TEST_ANTHROPIC_KEY: PROVIDER_KEY, ...(onLogLine && { WRIT_LOG_LEVEL: 'warn' }) },
    ...(onLogLine && { onLogLine }),
    files: { WRIT_MODELS_FILE: proxyModels(model), WRIT_AGENTS_FILE: EXTERNAL_AGENTS, ...files },
  });
  onTestFinished(() => test.close());
  return test;
}

/** A run of an external agent with the unmodified client that acts for it. */
export interface ExternalRun {
  readonly runId: string;
  readonly token: string;
  readonly baseUrl: string;
  readonly openai: OpenAI;
  readonly anthropic: Anthropic;
}

/** Starts a run of an external agent; only base URL and key of the client are set. */
export async function startExternalRun(
  { client }: Pick<TestPlatform, 'client'>,
  options: Partial<Pick<StartRunRequest, 'agent' | 'runBudget' | 'retention'>> = {},
): Promise<ExternalRun> {
  const { run } = await client.runs.startRun({
    requestId: newId('req'),
    agent: 'support-bot',
    goal: 'Answer ticket 4711.',
    ...options,
  });
  const runId = run?.runId ?? '';
  const { token, modelBaseUrl: baseUrl } = await client.runs.issueRunToken({ runId });
  await vi.waitFor(async () => {
    const state = (await client.runs.getRun({ runId })).run?.state;
    expect(state).toBe(RunState.RUNNING);
  });
  const openai = new OpenAI({ baseURL: baseUrl, apiKey: token });
  // The SDK of Anthropic adds /v1.
  const anthropic = new Anthropic({ baseURL: baseUrl.replace(/\/v1$/, ''), apiKey: token });
  return { runId, token, baseUrl, openai, anthropic };
}

/** An agent key with the unmodified client that uses it. */
export interface KeyHolder {
  readonly key: string;
  readonly baseUrl: string;
  /** Creates a client whose requests have these headers; the key is sent as the API key. */
  readonly client: (headers?: Readonly<Record<string, string>>) => OpenAI;
  readonly revoke: () => Promise<void>;
}

/** Creates a key of the role agent. */
export async function createAgentKey(
  {
    dataDir,
    platform,
  }: { readonly dataDir: string; readonly platform: { readonly modelBaseUrl: string } },
  agent = 'support-bot',
): Promise<KeyHolder> {
  const apiKeys = openApiKeys({ file: join(dataDir, API_KEYS_FILE) });
  const person = { subject: `${agent}-7`, tenant: 'default', roles: ['agent'], agent } as const;
  const key = await apiKeys.create(person);
  const baseUrl = platform.modelBaseUrl;
  return {
    key,
    baseUrl,
    client: (defaultHeaders = {}) => new OpenAI({ baseURL: baseUrl, apiKey: key, defaultHeaders }),
    async revoke() {
      await apiKeys.revoke(apiKeyId(key) ?? '');
    },
  };
}

/** Waits for the end of a run, and returns its stop reason. */
export async function stopReasonOf({ client }: TestPlatform, runId: string): Promise<string> {
  for await (const { event } of client.runs.watchRun({ runId })) {
    if (event?.entry.case === 'result') return event.entry.value.stopReason;
  }
  return '';
}
