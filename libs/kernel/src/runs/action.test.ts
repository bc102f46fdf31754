import { describe, expect, it } from 'vitest';
import { compileContract } from '../schemas/argument-contract.ts';
import { parseNativeCall, parseWorkerAction } from './action.ts';
import { isStopReason } from './stop-reason.ts';

const contracts = new Map([
  [
    'issue_refund',
    compileContract({
      type: 'object',
      properties: {
        user_id: { type: 'integer' },
        amount_usd: { type: 'number' },
        reason: { type: 'string' },
        odd: { type: 'money' },
      },
      required: ['user_id', 'amount_usd'],
      additionalProperties: false,
    }),
  ],
  ['ping', compileContract({ type: 'object' })],
]);
const contractOf = (tool: string) => contracts.get(tool);
const parse = (value: unknown) =>
  parseWorkerAction(typeof value === 'string' ? value : JSON.stringify(value), contractOf);
const refund = (args: object) => ({ kind: 'tool', name: 'issue_refund', args });

describe('parseWorkerAction', () => {
  it('parses and trims a tool call and a final answer (SV-2)', () => {
    expect(parse(refund({ user_id: 42, amount_usd: 1000, reason: '  late ' }))).toEqual({
      ok: true,
      action: {
        kind: 'tool',
        name: 'issue_refund',
        args: { user_id: 42, amount_usd: 1000, reason: 'late' },
      },
    });
    expect(parse({ kind: 'final', answer: ' done\n' })).toEqual({
      ok: true,
      action: { kind: 'final', answer: 'done' },
    });
    expect(parse({ kind: 'tool', name: ' ping ' })).toMatchObject({ action: { name: 'ping' } });
  });

  it('treats absent and null arguments as empty (SV-2)', () => {
    const action = { kind: 'tool', name: 'ping', args: {} };
    expect(parse({ kind: 'tool', name: 'ping' })).toEqual({ ok: true, action });
    expect(parse({ kind: 'tool', name: 'ping', args: null })).toEqual({ ok: true, action });
  });

  it.each<[string, unknown]>([
    ['not_object', '[]'],
    ['not_object', '"final"'],
    ['not_object', 'null'],
    ['non_json', 'I would refund.'],
    ['non_json', ' '],
    ['non_json', '{"kind":"final","answer":"a"} extra'],
    ['non_json', '{"kind":"final","kind":"tool","answer":"a"}'],
    ['non_json', { kind: 'invalid', raw: 'x' }],
    ['bad_kind', ''],
    ['bad_kind', {}],
    ['bad_kind', { kind: 'Tool' }],
    ['bad_kind', { kind: ['tool'] }],
    ['extra_keys_tool', { kind: 'tool', name: 'ping', args: {}, thought: 'x' }],
    ['extra_keys_tool', { kind: 'tool', name: 7, answer: 'x' }],
    ['extra_keys_final', { kind: 'final', answer: '', name: 'x' }],
    ['bad_tool_name', { kind: 'tool' }],
    ['bad_tool_name', { kind: 'tool', name: ' \u0085' }],
    ['bad_tool_name', { kind: 'tool', name: 7, args: [] }],
    ['bad_tool_args', { kind: 'tool', name: 'ghost', args: [] }],
    ['bad_tool_args', { kind: 'tool', name: 'ping', args: false }],
    ['bad_final_answer', { kind: 'final' }],
    ['bad_final_answer', { kind: 'final', answer: '  ' }],
    ['bad_final_answer', { kind: 'final', answer: { text: 'x' } }],
    ['unknown_tool:ghost', { kind: 'tool', name: 'ghost' }],
    ['unknown_tool:constructor', { kind: 'tool', name: 'constructor' }],
    ['extra_tool_args:issue_refund', refund({ hack: 1 })],
    ['missing_required_arg:issue_refund:user_id', refund({ amount_usd: 'x' })],
    ['bad_arg_type:issue_refund:user_id', refund({ user_id: true })],
    ['bad_arg_type:issue_refund:amount_usd', refund({ user_id: 1, amount_usd: '9' })],
    ['unknown_arg_spec:issue_refund:odd', refund({ user_id: 1, amount_usd: 9, odd: 1 })],
  ])('stops with invalid_action:%s on %j (SV-2)', (why, text) => {
    const parsed = parse(text);
    expect(parsed).toMatchObject({ ok: false, stopReason: `invalid_action:${why}` });
    expect(isStopReason(`invalid_action:${why}`)).toBe(true);
  });

  it('returns the raw output of the model (SV-7)', () => {
    expect(parse({ kind: 'nap' })).toMatchObject({ raw: { kind: 'nap' } });
    expect(parse('no json')).toMatchObject({ raw: { kind: 'invalid', raw: 'no json' } });
  });

  it('does not include an invalid tool name in the stop reason (SV-2)', () => {
    const parsed = parse({ kind: 'tool', name: `a\nb${'c'.repeat(500)}` });
    expect(parsed).toMatchObject({
      stopReason: `invalid_action:unknown_tool:a?b${'c'.repeat(61)}`,
    });
  });
});

describe('parseNativeCall', () => {
  it('validates native calls like tool actions (SV-2)', () => {
    const call = (name: string, text?: string | null) => parseNativeCall(name, text, contractOf);
    expect(call('issue_refund', '{"user_id":42,"amount_usd":1}')).toEqual(
      parse(refund({ user_id: 42, amount_usd: 1 })),
    );
    for (const none of [undefined, null, '', 'null', '{}']) {
      expect(call('ping', none)).toMatchObject({ ok: true, action: { args: {} } });
    }
    expect(call('ping', '{')).toMatchObject({ stopReason: 'invalid_action:non_json' });
    expect(call('ping', '[]')).toMatchObject({ stopReason: 'invalid_action:bad_tool_args' });
    expect(call('ghost', '{}')).toMatchObject({ stopReason: 'invalid_action:unknown_tool:ghost' });
    expect(call('issue_refund', '{}')).toMatchObject({
      stopReason: 'invalid_action:missing_required_arg:issue_refund:user_id',
    });
  });
});
