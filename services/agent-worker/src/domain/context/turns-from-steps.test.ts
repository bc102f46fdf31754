import { expect, it } from 'vitest';
import { turnsFromSteps } from './turns-from-steps.ts';

it('rebuilds a conversation from stored steps, with results matched to their calls (AG-8)', () => {
  const turns = turnsFromSteps([
    { kind: 'user_message', text: 'Find it.' },
    {
      kind: 'assistant_message',
      text: '',
      tool_calls: [
        { id: 'a', tool: 'search', arguments: { q: 'it' } },
        { id: 'lost', tool: 'search', arguments: {} },
      ],
    },
    { kind: 'tool_result', call_id: 'a', text: 'found' },
    { kind: 'tool_result', call_id: 'stray', text: 'whose?' },
    { kind: 'run_started' },
    { kind: 'assistant_message', text: 'Here.' },
    { kind: 'tool_result', call_id: 'a', text: 'late' },
  ]);
  expect(turns).toEqual([
    { role: 'user', text: 'Find it.' },
    {
      role: 'assistant',
      text: '',
      toolUses: [{ id: 'a', tool: 'search', argumentsJson: '{"q":"it"}' }],
    },
    { role: 'tool', results: [{ id: 'a', text: 'found', isError: false }] },
    { role: 'assistant', text: 'Here.' },
  ]);
});
