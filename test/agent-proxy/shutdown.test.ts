import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { ALIAS, proxyPlatform, startExternalRun } from './external-run.ts';
import { counterPlatform, pendingApproval, post, startMcpRun } from './mcp-run.ts';
import { answerText, scriptedModel } from './scripted-model.ts';

const CHAT = { model: ALIAS, messages: [{ role: 'user', content: 'Hello.' }] } as const;

it('waits for a model answer when agent-proxy shuts down (SYS-4, AP-2)', async () => {
  const stopped = Promise.withResolvers<void>();
  const model = await scriptedModel(async (request, response) => {
    await stopped.promise;
    // Longer than the time for which a closing server keeps idle connections open.
    await pause(1_000);
    answerText(request, response, 'Good day.');
  });
  const test = await proxyPlatform(model);
  const { openai } = await startExternalRun(test);
  const answer = openai.chat.completions.create({ ...CHAT, messages: [...CHAT.messages] });
  await vi.waitFor(() => expect(model.requests).toHaveLength(1));
  const stop = test.platform.stop();
  stopped.resolve();
  expect((await answer).choices[0]?.message.content).toBe('Good day.');
  await stop;
});

it('ends a model answer with an error when it takes longer than the shutdown of agent-proxy (SYS-4, AP-2)', async () => {
  const model = await scriptedModel(async (request) => {
    await once(request.closed, 'abort');
  });
  const test = await proxyPlatform(model);
  const { openai } = await startExternalRun(test);
  const answer = openai.chat.completions.create(
    { ...CHAT, messages: [...CHAT.messages] },
    { maxRetries: 0 },
  );
  const failed = expect(answer).rejects.toMatchObject({ status: 503, code: 'draining' });
  await vi.waitFor(() => expect(model.requests).toHaveLength(1));
  await test.platform.stop();
  await failed;
});

it('immediately answers a tool call that waits for a person when agent-proxy shuts down (SYS-4, AP-4)', async () => {
  const test = await counterPlatform();
  const run = await startMcpRun(test);
  const params = { name: 'wipe_disk', arguments: { disk: 'ask' } };
  const answer = post(run, { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  await pendingApproval(test, run.runId);
  const [response] = await Promise.all([answer, test.platform.stop()]);
  expect(await response.text()).toContain('agent-proxy is shutting down; repeat the request.');
});
