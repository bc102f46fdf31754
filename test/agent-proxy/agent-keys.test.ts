import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { newId } from '@writ/kernel';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import type { TestPlatform } from '@writ/testing/platform';
import type OpenAI from 'openai';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Forge } from '../e2e/identities.ts';
import { ALIAS, createAgentKey, proxyPlatform, stopReasonOf } from './external-run.ts';
import { answerText, scriptedModel } from './scripted-model.ts';

const answering = () =>
  scriptedModel((request, response) => answerText(request, response, 'Good day.'));

/** Makes a model request and returns the id of its run. */
async function ask(client: OpenAI, more: object = {}): Promise<string> {
  const messages = [{ role: 'user', content: newId('msg') }] as const;
  const { response } = await client.chat.completions
    .create({ model: ALIAS, messages: [...messages], ...more })
    .withResponse();
  return response.headers.get('x-writ-run-id') ?? '';
}

const runsOf = async ({ client }: TestPlatform) => (await client.runs.listRuns({})).runs;

/** Returns a client that calls OpenExternalRun of the supervisor as a replica of agent-proxy does. */
function replicaOf({ dataDir, platform }: TestPlatform) {
  const forge = new Forge(dataDir);
  const client = createRpcClient(SupervisionService, {
    address: platform.addresses.supervisor,
    serviceToken: () => forge.service('agent-proxy', 'supervisor'),
    telemetry: createTelemetry({ service: 'test', logLevel: 'silent' }),
  });
  onTestFinished(() => client.close());
  return client;
}

it('opens one run for the concurrent first requests of a conversation, for an unmodified client with an agent key (AP-1)', async () => {
  const test = await proxyPlatform(await answering());
  const { key, client } = await createAgentKey(test);
  const replica = replicaOf(test);
  const openai = client({ 'x-writ-conversation': 'ticket-4711' });
  const all = { length: 25 };
  // Opens the runs through one agent-proxy, and by direct calls to the supervisor, as other replicas would.
  const conversation = '5'.repeat(64);
  const [asked, opened] = await Promise.all([
    Promise.all(Array.from(all, () => ask(openai))),
    Promise.all(
      Array.from({ length: 50 }, () => replica.openExternalRun({ apiKey: key, conversation })),
    ),
  ]);
  expect(new Set(asked).size).toBe(1);
  expect(new Set(opened.map(({ runId }) => runId)).size).toBe(1);
  const runs = await runsOf(test);
  expect(runs).toHaveLength(2);
  const [runId = ''] = asked;
  const run = runs.find((one) => one.runId === runId);
  expect(run).toMatchObject({
    goal: expect.stringMatching(/^external: OpenAI\/JS /),
    createdBy: 'support-bot-7',
    agent: { name: 'support-bot' },
  });
  await test.client.runs.closeRun({ requestId: newId('req'), runId });
  await stopReasonOf(test, runId);
  const { run: ended } = await test.client.runs.getRun({ runId });
  expect(ended?.result?.usage?.turns).toBe(25n);
});

it('finds the run of a conversation by headers and fields of clients, and replaces a closed run (AP-1)', async () => {
  const test = await proxyPlatform(await answering());
  const { client, key, baseUrl } = await createAgentKey(test);
  const first = await ask(client({ 'x-claude-code-session-id': 'a' }));
  // A request that names no conversation belongs to the only open run of the key.
  expect(await ask(client())).toBe(first);
  const second = await ask(client({ 'session-id': 'b' }));
  expect(second).not.toBe(first);
  expect(await ask(client(), { prompt_cache_key: 'b' })).toBe(second);
  expect(await ask(client(), { metadata: { session_id: 'a' } })).toBe(first);
  expect(await ask(client({ session_id: 'b', 'mcp-session-id': 'c' }))).toBe(second);
  expect(await ask(client({ 'x-writ-run': first, 'x-writ-conversation': 'b' }))).toBe(first);
  const listed = await fetch(`${baseUrl}/models`, {
    headers: { 'x-api-key': key, 'x-writ-run': second },
  });
  expect(listed.headers.get('x-writ-run-id')).toBe(second);
  // Only two runs are open. A request that names no conversation would now open a third run, for the default
  // conversation.
  const { runs } = test.client;
  expect((await runsOf(test)).map(({ runId }) => runId).sort()).toEqual([first, second].sort());
  await runs.closeRun({ requestId: newId('req'), runId: second });
  expect(await stopReasonOf(test, second)).toBe('closed');
  const third = await vi.waitFor(() => ask(client({ 'session-id': 'b' })));
  expect([first, second]).not.toContain(third);
  const sessionOf = async (runId: string) => (await runs.getRun({ runId })).run?.sessionId;
  expect(await sessionOf(third)).toBe(await sessionOf(second));
  await expect(ask(client({ 'x-writ-run': second }))).rejects.toMatchObject({
    status: 403,
    code: 'run_ended',
  });
  await expect(ask(client({ 'x-writ-run': 'run_of_another' }))).rejects.toMatchObject({
    status: 404,
    code: 'run_not_found',
  });
});

it('opens no run to replace a halted run, above the limit of open runs, or with a key that is revoked or whose agent is unknown or not external (AP-1, SV-9)', async () => {
  const test = await proxyPlatform(await answering());
  const { control } = test.client;
  const { client, revoke } = await createAgentKey(test, 'single-bot');
  const openai = client({ 'x-writ-conversation': 'a' });
  const runId = await ask(openai);
  const statuses: number[] = [];
  const counting = client({ 'x-writ-conversation': 'b' }).withOptions({
    async fetch(url, init) {
      const answer = await fetch(url, init);
      statuses.push(answer.status);
      return answer;
    },
  });
  await expect(ask(counting)).rejects.toMatchObject({ status: 429, code: 'open_runs_limit' });
  expect(statuses).toEqual([429]);
  const scope = { kind: { case: 'run', value: { tenant: 'default', runId } } } as const;
  const { halt } = await control.halt({
    requestId: newId('req'),
    scope,
    reason: 'It must stop.',
    endRuns: true,
  });
  expect(await stopReasonOf(test, runId)).toMatch(/^halted/);
  for (let time = 0; time < 2; time += 1) {
    await expect(ask(openai)).rejects.toMatchObject({
      status: 403,
      code: expect.stringMatching(/^run_(halted|ended)$/),
    });
  }
  expect(await runsOf(test)).toHaveLength(1);
  await control.resume({ requestId: newId('req'), haltId: halt?.haltId ?? '' });
  const next = await vi.waitFor(() => ask(openai));
  expect(next).not.toBe(runId);
  await revoke();
  await vi.waitFor(() =>
    expect(ask(openai)).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' }),
  );
  const unknown = await createAgentKey(test, 'missing-bot');
  await expect(ask(unknown.client())).rejects.toMatchObject({
    status: 404,
    code: 'agent_not_found',
  });
  const wrong = await createAgentKey(test, 'inner-bot');
  await expect(ask(wrong.client())).rejects.toMatchObject({
    status: 400,
    code: 'run_not_external',
  });
});

it('opens no run to replace a run that reached its cap or was cancelled (AP-1, EM-2)', async () => {
  const test = await proxyPlatform(await answering());
  const { client } = await createAgentKey(test, 'capped-bot');
  const openai = client({ 'x-writ-conversation': 'a' });
  const capped = await ask(openai);
  await expect(ask(openai)).rejects.toMatchObject({ status: 402, code: 'budget_exhausted' });
  expect(await stopReasonOf(test, capped)).toBe('budget_exhausted:turns');
  for (let time = 0; time < 2; time += 1) {
    await expect(ask(openai)).rejects.toMatchObject({
      status: 403,
      code: 'run_ended',
      message: expect.stringContaining('ended with budget_exhausted:turns'),
    });
  }
  const other = client({ 'x-writ-conversation': 'b' });
  const cancelled = await ask(other);
  await test.client.runs.cancelRun({ requestId: newId('req'), runId: cancelled });
  expect(await stopReasonOf(test, cancelled)).toBe('cancelled');
  await expect(ask(other)).rejects.toMatchObject({
    status: 403,
    code: 'run_ended',
    message: expect.stringContaining('ended with cancelled'),
  });
  expect(await runsOf(test)).toHaveLength(2);
});
