import { fieldsOf } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { chatCompletions } from '../../domain/dialects/chat-completions.ts';
import { NO_USAGE } from '../../domain/ledger/spending.ts';
import { AnswerBuilder } from './answer-builder.ts';

/** Returns a builder with these chunks. */
function built(...chunks: readonly object[]): AnswerBuilder {
  const builder = new AnswerBuilder(chatCompletions, 'asked');
  for (const chunk of chunks) builder.add(chatCompletions.partOf(fieldsOf(chunk)));
  return builder;
}
const delta = (content: object, finish: string | null = null) => ({
  model: 'gpt-answered',
  choices: [{ index: 0, delta: content, finish_reason: finish }],
});

describe('a streamed answer', () => {
  it('is assembled from text, tool calls, finish reason and usage (EM-8)', () => {
    const builder = built(
      delta({ content: 'Let me ' }),
      delta({ content: 'look.' }),
      delta({ tool_calls: [{ index: 1, id: 'b', function: { name: 'two', arguments: '{' } }] }),
      delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'one', arguments: '{}' } }] }),
      delta({ tool_calls: [{ index: 1, function: { arguments: '}' } }] }, 'tool_calls'),
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 4 } },
    );
    expect(builder.build()).toEqual({
      answer: {
        text: 'Let me look.',
        toolUses: [
          { id: 'a', tool: 'one', argumentsJson: '{}' },
          { id: 'b', tool: 'two', argumentsJson: '{}' },
        ],
        endReason: 'tool_use',
        providerModel: 'gpt-answered',
      },
      warnings: [],
    });
    expect(builder.usage).toEqual({ ...NO_USAGE, input: 9n, output: 4n });
  });

  it.each([
    ['stop', 'end_turn'],
    ['length', 'max_tokens'],
    ['content_filter', 'content_filter'],
  ])('that ends with %s ends as %s (EM-9)', (finish, endReason) => {
    expect(built(delta({ content: 'x' }, finish)).build().answer.endReason).toBe(endReason);
  });

  it('generates ids for tool uses without an id', () => {
    const { toolUses } = built(
      delta({ tool_calls: [{ index: 0, function: { name: 'one' } }] }, 'stop'),
    ).build().answer;
    expect(toolUses).toEqual([{ id: 'call_1', tool: 'one', argumentsJson: '' }]);
  });

  it.each([
    { prompt_tokens: -1, completion_tokens: 2 },
    { prompt_tokens: 1.5, completion_tokens: 2 },
    { prompt_tokens: '7', completion_tokens: 2 },
    { prompt_tokens: 1e12, completion_tokens: 2 },
    'many',
  ])('rejects invalid usage: %j (EM-8)', (usage) => {
    const builder = built(delta({ content: 'x' }, 'stop'), { choices: [], usage });
    expect(builder.usage).toBeUndefined();
    expect(builder.build().warnings).toEqual([
      'The provider reported invalid or incomplete usage; usage is estimated.',
    ]);
  });

  it('limits cached and reasoning tokens to their totals (EM-8)', () => {
    const usage = {
      prompt_tokens: 5,
      completion_tokens: 3,
      prompt_tokens_details: { cached_tokens: 9 },
      completion_tokens_details: { reasoning_tokens: 9 },
    };
    const { usage: read } = built({ choices: [], usage });
    expect(read).toEqual({ ...NO_USAGE, input: 5n, cachedInput: 5n, output: 3n, reasoning: 3n });
  });

  it.each([
    [{}],
    [{ choices: 'none' }],
    [{ choices: [null] }],
    [{ choices: [{ delta: null }] }],
    [delta({ tool_calls: [null, 'x', { index: -1 }] })],
  ])('accepts any chunk of a provider: %j (EM-8)', (chunk) => {
    expect(() => built(chunk).build()).not.toThrow();
  });
});
