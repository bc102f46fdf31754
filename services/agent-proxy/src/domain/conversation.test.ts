import { expect, it } from 'vitest';
import { hintOfBody, hintOfHeaders } from './conversation.ts';

it('finds the run or conversation in the headers of a request, in order of precedence (AP-1)', () => {
  const ordered = {
    'x-writ-run': 'run_1',
    'x-writ-conversation': 'a',
    'x-claude-code-session-id': 'b',
    'session-id': 'c',
    session_id: 'd',
  };
  const found: (string | undefined)[] = [];
  for (const name of Object.keys(ordered)) {
    const { kind, name: value } = hintOfHeaders(ordered) ?? {};
    found.push(`${kind} ${value}`);
    Reflect.deleteProperty(ordered, name);
  }
  expect(found).toEqual([
    'run run_1',
    'conversation a',
    'conversation b',
    'conversation c',
    'conversation d',
  ]);
  expect(hintOfHeaders({ 'mcp-session-id': 's', 'x-writ-conversation': ' ' })).toBeUndefined();
});

it('finds the conversation of a model request in its body (AP-1)', () => {
  const name = (body: Parameters<typeof hintOfBody>[0]) => hintOfBody(body)?.name;
  expect(name({ prompt_cache_key: 'k', metadata: { session_id: 's' } })).toBe('k');
  expect(name({ metadata: { session_id: 's' } })).toBe('s');
  expect(name({ metadata: { session_id: 7 }, prompt_cache_key: '' })).toBeUndefined();
  expect(name([])).toBeUndefined();
});
