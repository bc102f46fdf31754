import type { StrategyDefinition } from '@writ/kernel';
import { describe, expect, it, vi } from 'vitest';
import { manifestOf } from '../../../test/manifest.ts';
import { type Script, scriptedContext } from '../../../test/scripted-context.ts';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Message } from '../../domain/agent/message.ts';
import type { ChatTurn, LlmOutcome } from '../../domain/calls/model-call.ts';
import { createView } from './context-strategies.ts';
import { Conversation } from './conversation.ts';
import { createChatPipeline } from './pipeline.ts';

const message: Message = {
  messageId: 'm-1',
  senderInstance: '',
  text: 'Proceed.',
  dataJson: '',
  correlationId: '',
  replyTo: '',
  partial: false,
};
const answerOf = (text: string): LlmOutcome => ({
  kind: 'answer',
  text,
  endReason: 'end_turn',
  nearBudget: false,
});
const long = (words: number) => Array.from({ length: words }, () => 'word').join(' ');

function pipelineOf(settings: Partial<AgentManifest> = {}, script: Omit<Script, 'manifest'> = {}) {
  const manifest = manifestOf(settings);
  return { pipeline: createChatPipeline(manifest), ...scriptedContext({ manifest, ...script }) };
}

describe('the view of a conversation', () => {
  const turns: ChatTurn[] = [
    { role: 'system', text: 'Write.' },
    { role: 'user', text: `First. ${long(50)}` },
    { role: 'assistant', text: `Second. ${long(50)}` },
    { role: 'user', text: 'Last. <|endoftext|>' },
  ];
  const view = async (context: Partial<AgentManifest['context']>, answers: LlmOutcome[] = []) => {
    const model = { model: 'small', alsoAllowed: [], jsonMode: false, timeoutMs: 300 };
    const settings = { model, context: { strategy: '', options: {}, ...context } };
    const { pipeline, ctx, asked } = pipelineOf(settings, { answers });
    return { shown: await pipeline.view(ctx, turns), asked, pipeline, ctx };
  };

  it('includes every turn or, within a context window, only the instructions and the latest turns that fit (AG-8)', async () => {
    expect((await view({})).shown).toBe(turns);
    const { shown } = await view({ contextWindow: 40 });
    expect(shown).toEqual([turns[0], turns[3]]);
  });

  it('is compacted with a marker when configured (AG-8)', async () => {
    const context = { strategy: 'compact', contextWindow: 90, options: { keep_last: 1 } };
    const { shown } = await view(context);
    expect(shown).toEqual([
      turns[0],
      turns[1],
      { role: 'user', hidden: 'compacted', text: '[1 earlier turns are left out here]' },
      turns[3],
    ]);
  });

  it('starts with a summary by the model, which later summaries extend (AG-8)', async () => {
    const context = { strategy: 'summary', contextWindow: 60, options: { keep_last: 1 } };
    const answers = [answerOf('They spoke.'), answerOf('They spoke more.')];
    const { shown, asked, pipeline, ctx } = await view(context, answers);
    expect(shown).toEqual([
      turns[0],
      { role: 'user', hidden: 'summary', text: 'Summary of what came before:\nThey spoke.' },
      turns[3],
    ]);
    await pipeline.view(ctx, turns);
    expect(asked.requests).toHaveLength(1);
    const longer: ChatTurn[] = [...turns, { role: 'assistant', text: long(50) }];
    const further = await pipeline.view(ctx, [...longer, { role: 'user', text: 'And?' }]);
    expect(asked.requests[1]?.messages[1]).toMatchObject({
      text: expect.stringContaining('They spoke.'),
    });
    expect(further).toHaveLength(3);
    expect(asked.requests.map(({ timeoutMs }) => timeoutMs)).toEqual([300, 300]);
  });

  it('omits the older turns when the model returns no summary (AG-8)', async () => {
    const context = { strategy: 'summary', contextWindow: 40, options: { keep_last: 1 } };
    const failed: LlmOutcome = { kind: 'failed', stopReason: 'llm_timeout', detail: '' };
    expect((await view(context, [failed])).shown).toEqual([turns[0], turns[3]]);
  });
});

describe('a strategy of a module', () => {
  it('compiles its options schema once for all views (AG-8)', () => {
    const properties = { suffix: { type: 'string' } };
    const read = vi.fn(() => properties);
    const shout: StrategyDefinition = {
      name: 'shout',
      options: Object.defineProperty({ properties }, 'properties', { get: read }),
      create: () => ({ compact: (turns) => turns }),
    };
    const context = { strategy: 'shout', options: { suffix: '!' } };
    for (let lease = 1; lease <= 3; lease += 1) {
      createView({ context }, new Map([[shout.name, shout]]));
    }
    expect(read).toHaveBeenCalledTimes(1);
    const invalid = { context: { ...context, options: { suffix: 7 } } };
    expect(() => createView(invalid, new Map([[shout.name, shout]]))).toThrow(
      'options of shout/suffix must be string.',
    );
  });
});

describe('the history of a session', () => {
  const before: ChatTurn[] = [
    { role: 'user', text: 'Begin.' },
    { role: 'assistant', text: 'Begun.' },
  ];

  it('precedes the message, and only later turns are stored (AG-8, SUP-2)', async () => {
    const { pipeline, ctx, asked } = pipelineOf({}, { history: before });
    const opened = await pipeline.open(ctx, message);
    expect(opened).toEqual([
      { role: 'system', text: 'Write.' },
      ...before,
      { role: 'user', text: 'Proceed.' },
    ]);
    const conversation = new Conversation(opened, pipeline.known);
    conversation.add({ role: 'assistant', text: 'Done.' });
    conversation.remember(ctx);
    expect(asked.remembered).toEqual([
      { role: 'user', text: 'Proceed.' },
      { role: 'assistant', text: 'Done.' },
    ]);
  });

  it('comes from the stored steps in the message when the session has no history (AG-8)', async () => {
    const session_steps = before.map(({ role, text }: { role: string; text?: string }) => ({
      kind: `${role}_message`,
      text,
    }));
    const seeded = { ...message, dataJson: JSON.stringify({ session_steps, topic: 'x' }) };
    const { pipeline, ctx } = pipelineOf({ instructions: '' });
    expect(await pipeline.open(ctx, seeded)).toEqual([
      ...before,
      { role: 'user', text: 'Proceed.\n\n{"topic":"x"}' },
    ]);
    const known = pipelineOf({}, { history: [{ role: 'user', text: 'Known.' }] });
    const opened = await known.pipeline.open(known.ctx, seeded);
    expect(opened[1]).toEqual({ role: 'user', text: 'Known.' });
  });
});
