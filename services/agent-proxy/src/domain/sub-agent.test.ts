import { expect, it } from 'vitest';
import { subAgentOf, taskOf } from './sub-agent.ts';

it('identifies sub-agents by the headers of each client, and the main agent by their absence (AP-6)', () => {
  const claude = { 'x-claude-code-session-id': 's', 'x-claude-code-agent-id': 'a' };
  expect(subAgentOf(claude)).toEqual({ id: 'a', parent: '' });
  expect(subAgentOf({ ...claude, 'x-claude-code-parent-agent-id': 'b' })?.parent).toBe('b');
  expect(subAgentOf({ 'x-claude-code-session-id': 's' })).toBeUndefined();
  const codex = { 'session-id': 's', 'thread-id': 't' };
  expect(subAgentOf(codex)).toBeUndefined();
  expect(subAgentOf({ ...codex, 'x-codex-parent-thread-id': 's' })).toEqual({
    id: 't',
    parent: 's',
  });
  expect(subAgentOf({ ...codex, 'x-openai-subagent': 'review' })).toEqual({ id: 't', parent: '' });
  expect(subAgentOf({ ...claude, 'x-writ-agent': 'w', 'x-writ-parent': 'p' })).toEqual({
    id: 'w',
    parent: 'p',
  });
});

it('reads the task of a sub-agent from the user messages, in each dialect (AP-6)', () => {
  const system = { role: 'system', content: 'You help.' };
  const parts = [{ type: 'text', text: 'Find it.' }, { type: 'image' }];
  expect(taskOf({ messages: [system, { role: 'user', content: 'Find it.' }] })).toBe('Find it.');
  expect(taskOf({ messages: [{ role: 'user', content: parts }] })).toBe('Find it.');
  expect(taskOf({ input: 'Find it.' })).toBe('Find it.');
  expect(taskOf({ input: [{ role: 'user', content: parts }] })).toBe('Find it.');
  // Claude Code and Codex send their own context before the task.
  const context = { type: 'text', text: '<system-reminder>' };
  expect(taskOf({ messages: [{ role: 'user', content: [context, ...parts] }] })).toBe(
    'Find it.\n<system-reminder>',
  );
  const environment = { role: 'user', content: [{ type: 'input_text', text: 'cwd' }] };
  const asked = { role: 'user', content: [{ type: 'input_text', text: 'Find it.' }] };
  expect(taskOf({ input: [environment, asked] })).toBe('Find it.\ncwd');
  expect(taskOf({ input: 'x'.repeat(9_000) })).toHaveLength(2_000);
  expect(taskOf([])).toBe('');
  expect(taskOf({ messages: [system] })).toBe('');
});
