import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { newId } from '@writ/kernel';
import { expect, it, onTestFinished, vi } from 'vitest';
import { PROVIDER_KEY, proxyModels } from '../agent-proxy/external-run.ts';
import { approveEdited } from '../approve-edited.ts';
import { type ServedPlatform, servePlatform } from '../e2e/served-platform.ts';
import { CALL_POLICY, modelOf, REVIEWED_AGENTS, shell } from './reviewed-calls.ts';

const POLLING = { timeout: 60_000, interval: 1 };

it('neither loses nor duplicates an approval after kill -9 while a call waits, and between the decision and the answer (AP-4, AP-5, CO-1)', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-reviewed-'));
  const remove = shell('rm -rf build');
  const model = await modelOf({ calls: [remove] });
  const files = {
    WRIT_MODELS_FILE: proxyModels(model),
    WRIT_AGENTS_FILE: REVIEWED_AGENTS,
    WRIT_POLICY_FILE: CALL_POLICY,
  };
  const env: Record<string, string> = { WRIT_TEST_ANTHROPIC_KEY: PROVIDER_KEY };
  for (const [name, text] of Object.entries(files)) {
    env[name] = join(dataDir, `${name.toLowerCase()}.yaml`);
    writeFileSync(env[name], text);
  }
  const serve = () => servePlatform(dataDir, 'refund-desk', env);
  let platform: ServedPlatform = await serve();
  onTestFinished(async () => {
    await platform.kill();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const { run } = await platform.client.runs.startRun({
    requestId: newId('req'),
    agent: 'support-bot',
    goal: 'Clean up.',
  });
  const runId = run?.runId ?? '';
  const { token } = await platform.client.runs.issueRunToken({ runId });
  const authorization = `Bearer ${token}`;
  await vi.waitFor(async () => {
    const { status } = await fetch(`${platform.modelBaseUrl}/models`, {
      headers: { authorization },
    });
    expect(status, 'Before its delivery, an agent is unavailable.').toBe(200);
  }, POLLING);
  /** Sends the same request each time, with the header with which the SDKs mark a retry. */
  const ask = async () => {
    const response = await fetch(`${platform.modelBaseUrl}/chat/completions`, {
      method: 'POST',
      headers: {
        authorization,
        'content-type': 'application/json',
        'x-stainless-retry-count': '1',
      },
      body: JSON.stringify({
        model: 'support-model',
        messages: [{ role: 'user', content: 'Clean up.' }],
        tools: [{ type: 'function', function: { name: 'shell' } }],
      }),
    });
    expect(response.status).toBe(200);
    return (await response.json()) as {
      choices: { message: { tool_calls: { id: string; function: { arguments: string } }[] } }[];
    };
  };
  const waiting = ask().catch(() => undefined);
  await vi.waitFor(() => expect(approvalIn(dataDir)).toMatchObject({ delivered: 0 }), POLLING);
  await platform.kill();
  await waiting;
  platform = await serve();
  const { approval_id: approvalId } = approvalIn(dataDir) ?? { approval_id: '' };
  const again = vi.waitFor(ask, POLLING).catch(() => undefined);
  await approveEdited(platform, approvalId, { command: 'rm -rf build/tmp' });
  await vi.waitFor(() => expect(approvalIn(dataDir)).toMatchObject({ delivered: 1 }), POLLING);
  await platform.kill();
  platform = await serve();
  await again;
  const { choices } = await vi.waitFor(ask, POLLING);
  expect(choices[0]?.message.tool_calls).toMatchObject([
    { id: remove.id, function: { arguments: '{"command":"rm -rf build/tmp"}' } },
  ]);
  expect(model.requests).toHaveLength(1);
  const { approvals } = await platform.client.approvals.listApprovals({ runId });
  expect(approvals).toHaveLength(1);
});

/** Returns the id of the only approval in the database of agent-proxy, and whether a call has used the approval. */
function approvalIn(dataDir: string) {
  const database = new DatabaseSync(join(dataDir, 'agent-proxy.db'), { readOnly: true });
  try {
    const query = 'SELECT approval_id, delivered FROM tool_calls WHERE approval_id IS NOT NULL';
    return database.prepare(query).get() as
      | { readonly approval_id: string; readonly delivered: number }
      | undefined;
  } finally {
    database.close();
  }
}
