import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { newId } from '@writ/kernel';
import OpenAI from 'openai';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type ServedPlatform, servePlatform } from '../e2e/served-platform.ts';
import {
  ALIAS,
  createAgentKey,
  EXTERNAL_AGENTS,
  PROVIDER_KEY,
  proxyModels,
} from './external-run.ts';
import { answerText, scriptedModel } from './scripted-model.ts';

const PATIENT = { timeout: 60_000, interval: 1 };

it('opens one run for a conversation when supervisor and agent-proxy are killed between opening the run and the first answer (AP-1, CO-1)', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-agent-keys-'));
  let isHeld = true;
  const model = await scriptedModel(async (request, response) => {
    // The model answers no request until the last kill.
    if (isHeld) return;
    answerText(request, response, 'Good day.');
  });
  writeFileSync(join(dataDir, 'models.yaml'), proxyModels(model));
  writeFileSync(join(dataDir, 'agents.yaml'), EXTERNAL_AGENTS);
  const serve = () =>
    servePlatform(dataDir, 'refund-desk', {
      WRIT_MODELS_FILE: join(dataDir, 'models.yaml'),
      WRIT_AGENTS_FILE: join(dataDir, 'agents.yaml'),
      WRIT_TEST_ANTHROPIC_KEY: PROVIDER_KEY,
    });
  let platform: ServedPlatform = await serve();
  onTestFinished(async () => {
    await platform.kill();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const { key } = await createAgentKey({ dataDir, platform });
  const asking = (conversation: string) => {
    const defaultHeaders = { 'x-writ-conversation': conversation };
    const baseURL = platform.modelBaseUrl;
    const openai = new OpenAI({ baseURL, apiKey: key, defaultHeaders, maxRetries: 0 });
    return Array.from({ length: 5 }, async () => {
      const messages = [{ role: 'user', content: newId('msg') }] as const;
      const { response } = await openai.chat.completions
        .create({ model: ALIAS, messages: [...messages] })
        .withResponse();
      return response.headers.get('x-writ-run-id') ?? '';
    });
  };
  const killWhen = async (conversation: string, reached: () => void) => {
    const asked = Promise.allSettled(asking(conversation));
    await vi.waitFor(reached, PATIENT);
    await platform.kill();
    await asked;
    platform = await serve();
  };
  await killWhen('recorded', () => expect(runsIn(dataDir)).toHaveLength(1));
  const before = model.requests.length;
  await killWhen('asked', () => expect(model.requests.length).toBeGreaterThan(before));
  isHeld = false;
  for (const conversation of ['recorded', 'asked']) {
    // Requests fail until the slot lease of the killed process has expired.
    const runIds = await vi.waitFor(() => Promise.all(asking(conversation)), PATIENT);
    expect(new Set(runIds).size).toBe(1);
  }
  const { runs } = platform.client;
  const opened = (await runs.listRuns({})).runs;
  expect(opened).toHaveLength(2);
  for (const { runId } of opened) {
    await runs.closeRun({ requestId: newId('req'), runId });
    await vi.waitFor(
      async () => {
        const { run } = await runs.getRun({ runId });
        expect(run?.result?.stopReason).toBe('closed');
      },
      { timeout: 60_000 },
    );
  }
});

/** The runs in the database of the supervisor. */
function runsIn(dataDir: string): unknown[] {
  const database = new DatabaseSync(join(dataDir, 'supervisor.db'), { readOnly: true });
  try {
    return database.prepare('SELECT run_id FROM runs').all();
  } finally {
    database.close();
  }
}
