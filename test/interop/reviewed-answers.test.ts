import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { newId } from '@writ/kernel';
import { startTestPlatform } from '@writ/testing/platform';
import OpenAI from 'openai';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  ALIAS,
  CLAUDE,
  PROVIDER_KEY,
  proxyModels,
  startExternalRun,
  stopReasonOf,
} from '../agent-proxy/external-run.ts';
import { pendingApproval, verifiedAudit } from '../agent-proxy/mcp-run.ts';
import { event, scriptedModel } from '../agent-proxy/scripted-model.ts';
import { approveEdited } from '../approve-edited.ts';
import {
  ASKS,
  askChat,
  CALL_POLICY,
  chatRequest,
  historyOf,
  messageRequest,
  modelOf,
  REVIEWED_AGENTS,
  responseRequest,
  reviewedPlatform,
  shell,
  streamChat,
  streamMessages,
} from './reviewed-calls.ts';

/** The text that replaces a call of `rm -rf /`. */
const REFUSED = 'Nothing was executed. shell was refused by policy: supervisor_block:destroys_all.';

describe('tool calls in the answer of a model, with an unmodified client', () => {
  it.each(ASKS)(
    'are passed, withheld or edited by a person before the client gets them: %s (AP-5, SV-5, SV-8)',
    async (_, ask) => {
      const list = shell('ls');
      const remove = shell('rm -rf build');
      const model = await modelOf(
        { text: 'I look. ', calls: [list] },
        { text: 'I wipe. ', calls: [shell('rm -rf /'), shell('ls')] },
        { text: 'I stop.' },
        { calls: [remove] },
      );
      const test = await reviewedPlatform(model);
      const run = await startExternalRun(test);
      expect(await ask(run, 'Look.')).toEqual({
        text: 'I look. ',
        calls: [{ id: list.id, command: 'ls' }],
      });
      // The client never sees the withheld calls; the model gets the reason and continues.
      const continued = await ask(run, 'Wipe.');
      expect(continued.calls).toEqual([]);
      expect(continued.text).toMatch(/^(I wipe. )?I stop.$/);
      expect(historyOf(model.requests[2])).toContain('shell was refused by policy');
      expect(historyOf(model.requests[2])).toContain('destroys_all');
      expect(historyOf(model.requests[2])).toContain('another call of the same turn');
      const edited = ask(run, 'Clean.');
      const { approvalId } = await pendingApproval(test, run.runId);
      await approveEdited(test, approvalId, { command: 'rm -rf build/tmp' });
      expect(await edited).toEqual({
        text: '',
        calls: [{ id: remove.id, command: 'rm -rf build/tmp' }],
      });
      expect(model.requests).toHaveLength(4);
      const records = await verifiedAudit(test);
      const decisions = records.filter(({ kind }) => kind === 'decision');
      expect(decisions.map(({ reason }) => reason)).toEqual(
        expect.arrayContaining(['harmless', 'destroys_all', 'shell']),
      );
      await test.client.runs.closeRun({ requestId: newId('req'), runId: run.runId });
      await stopReasonOf(test, run.runId);
      const { run: ended } = await test.client.runs.getRun({ runId: run.runId });
      expect(ended?.result?.usage?.turns).toBe(4n);
    },
  );

  it('are not reviewed for an agent without reviewed answers (AP-5)', async () => {
    const wipe = shell('rm -rf /');
    const test = await reviewedPlatform(await modelOf({ calls: [wipe] }));
    const run = await startExternalRun(test, { agent: 'unreviewed-bot' });
    const calls = [{ id: wipe.id, command: 'rm -rf /' }];
    expect(await askChat(run)).toEqual({ text: '', calls });
  });

  it('end the turn with a text after four refused answers, and the run with on_refusal: stop (AP-5)', async () => {
    const model = await modelOf(
      ...['a', 'b', 'c', 'd', 'e'].map(() => ({ calls: [shell('rm -rf /')] })),
    );
    const test = await reviewedPlatform(model);
    const run = await startExternalRun(test);
    expect(await askChat(run)).toEqual({ text: REFUSED, calls: [] });
    expect(model.requests).toHaveLength(4);
    const strict = await startExternalRun(test, { agent: 'strict-bot' });
    expect(await streamChat(strict)).toEqual({ text: REFUSED, calls: [] });
    expect(model.requests).toHaveLength(5);
    expect(await stopReasonOf(test, strict.runId)).toBe('supervisor_block:destroys_all');
    await expect(askChat(strict)).rejects.toMatchObject({ status: 403, code: 'run_ended' });
  });

  describe.each([
    ['the next answer follows', 'support-bot', 'I stop.'],
    ['the refusal follows', 'strict-bot', REFUSED],
  ])('that are refused after streamed text: %s', (_, agent, text) => {
    const startRun = async () => {
      const wipe = { text: 'I wipe. ', calls: [shell('rm -rf /')] };
      const test = await reviewedPlatform(await modelOf(wipe, { text: 'I stop.' }));
      return await startExternalRun(test, { agent });
    };

    it('in a separate block, after the end of the streamed block (AP-2, AP-5)', async () => {
      const { anthropic } = await startRun();
      const stream = anthropic.messages.stream(messageRequest('Wipe.'));
      const events: { readonly type: string; readonly index?: number }[] = [];
      for await (const part of stream) events.push(part);
      const blocks = events.filter(({ type }) => /^content_block_(start|stop)$/.test(type));
      expect(blocks.map(({ type, index }) => `${type} ${index}`)).toEqual([
        'content_block_start 0',
        'content_block_stop 0',
        'content_block_start 1',
        'content_block_stop 1',
      ]);
      const starts = events.filter(({ type }) => type === 'message_start');
      expect(starts).toHaveLength(1);
      const { content } = await stream.finalMessage();
      expect(content).toMatchObject([
        { type: 'text', text: 'I wipe. ' },
        { type: 'text', text },
      ]);
    });

    it('in a separate item of the same response (AP-2, AP-5)', async () => {
      const { openai } = await startRun();
      const stream = openai.responses.stream({ ...responseRequest('Wipe.'), store: false });
      const events: { readonly type: string; readonly output_index?: number }[] = [];
      for await (const part of stream) events.push(part);
      const items = events.filter(({ type }) => /^response\.(created|output_item)/.test(type));
      expect(items.map(({ type, output_index: index = '' }) => `${type} ${index}`)).toEqual([
        'response.created ',
        'response.output_item.added 0',
        'response.output_item.done 0',
        'response.output_item.added 1',
        'response.output_item.done 1',
      ]);
      const { output } = await stream.finalResponse();
      expect(output).toMatchObject([{ content: [{ text: 'I wipe. ' }] }, { content: [{ text }] }]);
    });
  });

  it('are withheld when their type is unknown, in every dialect (AP-5)', async () => {
    const model = await scriptedModel(({ path, body }, response) => {
      const usage = { input_tokens: 3, output_tokens: 5, total_tokens: 8 };
      const unknown = {
        '/chat/completions': {
          id: 'chatcmpl-1',
          object: 'chat.completion',
          choices: [
            {
              index: 0,
              message: {
                role: 'assistant',
                content: null,
                function_call: { name: 'shell', arguments: '{"command":"rm"}' },
              },
              finish_reason: 'function_call',
            },
          ],
          usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 },
        },
        '/messages': {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          content: [{ type: 'server_tool_use', id: 'x', name: 'shell', input: {} }],
          stop_reason: 'end_turn',
          usage,
        },
        '/responses': {
          id: 'resp_1',
          object: 'response',
          status: 'completed',
          output: [{ type: 'shell_call', call_id: 'x', action: { commands: ['rm'] } }],
          usage,
        },
      }[path];
      if (body.stream === true) {
        response.setHeader('content-type', 'text/event-stream');
        response.end(event({ type: 'response.web_run.started', sequence_number: 0 }));
        return;
      }
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(unknown));
    });
    const test = await reviewedPlatform(model);
    const run = await startExternalRun(test);
    for (const [name, ask] of ASKS.filter(([name]) => !name.startsWith('streamed'))) {
      await expect(ask(run), name).rejects.toMatchObject({ status: 403 });
    }
    const { openai } = run;
    const stream = openai.responses.stream({ model: ALIAS, input: 'Go.' }).finalResponse();
    await expect(stream).rejects.toThrow(/cannot be reviewed/);
  });

  it.each<[string, object, object, string]>([
    [
      'a custom tool',
      { tools: [{ type: 'custom', custom: { name: 'shell' } }] },
      {
        tool_calls: [
          { id: 'call_1', type: 'custom', custom: { name: 'shell', input: '{"command":"ls"}' } },
        ],
      },
      'tool_calls',
    ],
    [
      'a deprecated function',
      { functions: [{ name: 'shell', parameters: { type: 'object' } }] },
      { function_call: { name: 'shell', arguments: '{"command":"ls"}' } },
      'function_call',
    ],
  ])(
    'is withheld from a repeated request, too, if it is a call of %s in chat completions (AP-5, EM-7)',
    async (_, fields, called, finish) => {
      const message = { role: 'assistant', content: null, ...called };
      const usage = { prompt_tokens: 30, completion_tokens: 5, total_tokens: 35 };
      const model = await scriptedModel((_request, response) => {
        const choices = [{ index: 0, message, finish_reason: finish }];
        const envelope = { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm' };
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ ...envelope, choices, usage }));
      });
      const test = await reviewedPlatform(model);
      const { openai } = await startExternalRun(test);
      const body = { model: ALIAS, messages: [{ role: 'user' as const, content: 'Look.' }] };
      const headers = { 'Idempotency-Key': 'k_1' };
      for (const _attempt of [1, 2, 3]) {
        await expect(
          openai.chat.completions.create({ ...body, ...fields }, { headers }),
        ).rejects.toMatchObject({ status: 403, code: 'unreviewable_output' });
      }
      expect(model.requests).toHaveLength(1);
    },
  );
});

describe('a request whose calls wait for a person', () => {
  it('streams the text at once, and the call after the approval (AP-4, AP-5)', async () => {
    const remove = shell('rm -rf build');
    const model = await modelOf({ text: 'I remove it.', calls: [remove] });
    const test = await reviewedPlatform(model);
    const run = await startExternalRun(test);
    const stream = run.anthropic.messages.stream({
      model: CLAUDE,
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Clean up.' }],
      tools: [{ name: 'shell', input_schema: { type: 'object' } }],
    });
    let text = '';
    stream.on('text', (delta) => {
      text += delta;
    });
    const { approvalId } = await pendingApproval(test, run.runId);
    await vi.waitFor(() => expect(text).toBe('I remove it.'));
    expect(stream.currentMessage?.content).toHaveLength(1);
    await approveEdited(test, approvalId);
    const { content } = await stream.finalMessage();
    expect(content[1]).toMatchObject({ id: remove.id, input: { command: 'rm -rf build' } });
  });

  it('is refused after its hold time, and an equal request gets the approved call without another model call (AP-4, AP-5)', async () => {
    const remove = shell('rm -rf build');
    const model = await modelOf({ calls: [remove] });
    const test = await reviewedPlatform(model);
    const run = await startExternalRun(test, { agent: 'hasty-bot' });
    const hasty = { ...run, openai: run.openai.withOptions({ maxRetries: 0 }) };
    const { approvalId } = await askChat(hasty).then(
      () => expect.unreachable('the call waits'),
      async (error: unknown) => {
        expect(error).toMatchObject({ status: 503, code: 'approval_pending' });
        expect((error as { headers: Headers }).headers.get('x-should-retry')).toBe('true');
        return await pendingApproval(test, run.runId);
      },
    );
    await approveEdited(test, approvalId, { command: 'rm -rf build/tmp' });
    const calls = [{ id: remove.id, command: 'rm -rf build/tmp' }];
    expect(await askChat(hasty)).toEqual({ text: '', calls });
    expect(model.requests).toHaveLength(1);
    // The answer was delivered, so an equal request is a new request with a new approval.
    model.next = { calls: [shell('rm -rf build')] };
    await expect(askChat(hasty)).rejects.toMatchObject({ code: 'approval_pending' });
    expect(model.requests).toHaveLength(2);
    const { approvals } = await test.client.approvals.listApprovals({ runId: run.runId });
    expect(approvals.map(({ state }) => state).toSorted()).toEqual(
      [ApprovalState.PENDING, ApprovalState.APPROVED].toSorted(),
    );
  });

  it('applies the decision to an equal call in a later answer after a disconnect (AP-4, AP-5)', async () => {
    const model = await modelOf({ calls: [shell('rm -rf build')] });
    const test = await reviewedPlatform(model);
    const run = await startExternalRun(test);
    const leaving = new AbortController();
    // agent-proxy starts the stream when its calls wait for a person.
    const stream = await run.openai.chat.completions.create(
      {
        model: ALIAS,
        messages: [{ role: 'user', content: 'Once.' }],
        tools: [{ type: 'function', function: { name: 'shell' } }],
        stream: true,
      },
      { signal: leaving.signal },
    );
    leaving.abort();
    for await (const _ of stream) expect.unreachable('the client has disconnected');
    const { approvalId } = await pendingApproval(test, run.runId);
    await approveEdited(test, approvalId, { command: 'rm -rf build/tmp' });
    const again = shell('rm -rf build');
    model.next = { calls: [again] };
    const calls = [{ id: again.id, command: 'rm -rf build/tmp' }];
    expect(await askChat(run, 'Twice.')).toEqual({ text: '', calls });
    expect(model.requests).toHaveLength(2);
  });

  it('fails when an equal call of another request has used its approval (AP-4, AP-5)', async () => {
    const model = await modelOf({ calls: [shell('rm -rf build')] });
    const test = await reviewedPlatform(model);
    const run = await startExternalRun(test, { agent: 'hasty-bot' });
    const hasty = { ...run, openai: run.openai.withOptions({ maxRetries: 0 }) };
    await expect(askChat(hasty, 'Once.')).rejects.toMatchObject({ code: 'approval_pending' });
    const { approvalId } = await pendingApproval(test, run.runId);
    await approveEdited(test, approvalId);
    const equal = shell('rm -rf build');
    model.next = { calls: [equal] };
    const calls = [{ id: equal.id, command: 'rm -rf build' }];
    expect(await askChat(hasty, 'Twice.')).toEqual({ text: '', calls });
    await expect(askChat(hasty, 'Once.')).rejects.toMatchObject({
      status: 400,
      code: 'approval_used',
    });
  });

  it('is refused once by a rejection; a later equal call gets another approval (AP-4, AP-5)', async () => {
    const model = await modelOf(
      { calls: [shell('rm -rf build')] },
      { text: 'I ask later.' },
      { calls: [shell('rm -rf build')] },
    );
    const test = await reviewedPlatform(model);
    const run = await startExternalRun(test);
    const rejected = askChat(run, 'Once.');
    const first = await pendingApproval(test, run.runId);
    await test.client.approvals.decideApproval({
      requestId: newId('req'),
      approvalId: first.approvalId,
      answer: { case: 'reject', value: {} },
      comment: 'Not now.',
    });
    expect(await rejected).toEqual({ text: 'I ask later.', calls: [] });
    const asked = askChat(run, 'Twice.');
    const second = await pendingApproval(test, run.runId);
    await approveEdited(test, second.approvalId);
    expect((await asked).calls).toMatchObject([{ command: 'rm -rf build' }]);
    expect(model.requests).toHaveLength(3);
  });

  it('ends with an error when the run is halted, and executes nothing (AP-5, SV-9)', async () => {
    const test = await reviewedPlatform(await modelOf({ calls: [shell('rm -rf build')] }));
    const run = await startExternalRun(test);
    const streamed = streamMessages(run);
    const whole = askChat(run);
    const ended = Promise.all([
      expect(streamed).rejects.toThrow(/halt/i),
      expect(whole).rejects.toMatchObject({ status: 403 }),
    ]);
    await pendingApproval(test, run.runId);
    await test.client.control.halt({
      requestId: newId('req'),
      scope: { kind: { case: 'run', value: { tenant: 'default', runId: run.runId } } },
      reason: 'It must stop.',
    });
    await ended;
  });

  it('is decided once, although the hook also sends the call after the answer (AP-5)', async () => {
    const remove = shell('rm -rf build');
    const test = await reviewedPlatform(await modelOf({ calls: [remove] }));
    const run = await startExternalRun(test);
    const asked = askChat(run);
    const { approvalId } = await pendingApproval(test, run.runId);
    await approveEdited(test, approvalId, { command: 'rm -rf build/tmp' });
    await asked;
    const response = await fetch(new URL('/hooks/claude-code', run.baseUrl), {
      method: 'POST',
      headers: { authorization: `Bearer ${run.token}` },
      body: JSON.stringify({
        hook_event_name: 'PreToolUse',
        tool_name: 'shell',
        tool_use_id: remove.id,
        tool_input: { command: 'rm -rf build/tmp' },
      }),
    });
    expect(await response.json()).toMatchObject({
      hookSpecificOutput: { permissionDecision: 'allow' },
    });
    const { approvals } = await test.client.approvals.listApprovals({ runId: run.runId });
    expect(approvals).toHaveLength(1);
  });
});

it('continues the same model call and approval after a restart of agent-proxy (AP-4, SYS-4)', async () => {
  const model = await modelOf({ calls: [shell('make')] });
  const dataDir = mkdtempSync(join(tmpdir(), 'writ-restart-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const files = {
    WRIT_MODELS_FILE: proxyModels(model),
    WRIT_AGENTS_FILE: REVIEWED_AGENTS,
    WRIT_POLICY_FILE: CALL_POLICY,
  };
  const env = { WRIT_TEST_ANTHROPIC_KEY: PROVIDER_KEY };
  const test = await startTestPlatform({ dataDir, env, files });
  const run = await startExternalRun(test);
  const answer = expect(
    run.openai.chat.completions.create(chatRequest('Build.'), { maxRetries: 0 }),
  ).rejects.toMatchObject({ status: 503, code: 'draining' });
  const { approvalId } = await pendingApproval(test, run.runId);
  await test.close();
  await answer;
  const again = await startTestPlatform({ dataDir, env, files });
  onTestFinished(() => again.close());
  const openai = new OpenAI({ baseURL: again.platform.modelBaseUrl, apiKey: run.token });
  const repeated = openai.chat.completions.create(chatRequest('Build.'), { maxRetries: 0 });
  await approveEdited(again, approvalId);
  const [call] = (await repeated).choices[0]?.message.tool_calls ?? [];
  expect(call).toMatchObject({ function: { name: 'shell' } });
  expect(model.requests).toHaveLength(1);
});
