import { create } from '@bufbuild/protobuf';
import { EditableArgumentSchema } from '@writ/contracts/writ/approval/v1/approval_pb';
import { describe, expect, it } from 'vitest';
import {
  changesJson,
  formArguments,
  hasProblem,
  type Inputs,
  proposedInput,
} from './edited-arguments.ts';

/** The form of an action with one editable argument. */
const formOf = (value: unknown, limits: { maxJson?: string; decimals?: number } = {}) =>
  formArguments(JSON.stringify({ user_id: 42, arg: value }), [
    create(EditableArgumentSchema, { argument: 'arg', ...limits }),
  ]);
const AMOUNT = formOf(1200, { maxJson: '1100', decimals: 2 });
const COUNT = formOf(7);
const entered = (text: string): Inputs => ({ arg: text });

describe('a number in the form', () => {
  it.each([
    ['850.50', '{"arg":850.5}'],
    ['0.75', '{"arg":0.75}'],
    ['700.0', '{"arg":700}'],
    ['120.05', '{"arg":120.05}'],
    ['-3', '{"arg":-3}'],
    [' 900 ', '{"arg":900}'],
    ['4111111111111111', '{"arg":4111111111111111}'],
  ])('is sent exactly as typed: %j (PE-2, SV-5)', (text, changes) => {
    expect(hasProblem(AMOUNT, entered(text))).toBe(false);
    expect(changesJson(AMOUNT, entered(text))).toBe(changes);
  });

  it.each([
    '',
    '-',
    '.',
    '.5',
    '850.',
    '850.505',
    '850.500',
    '8a',
    '1e3',
    '0x10',
    'Infinity',
    'NaN',
    '+5',
    '850,50',
    '1,200',
    '1,200.50',
    '1.200,50',
    '1.000',
    '1 200',
    "1'200",
    '$850',
    '--5',
    '1.2.3',
    '9007199254740993',
    '590295810358705651712',
    `1${'0'.repeat(400)}`,
  ])('cannot be sent unless it is complete and exact: %j (PE-2, SV-5)', (text) => {
    expect(hasProblem(AMOUNT, entered(text))).toBe(true);
    expect(changesJson(AMOUNT, entered(text))).toBeUndefined();
  });

  it('has as many decimals as JSON can carry if the tool declares no precision (PE-2, SV-5)', () => {
    expect(changesJson(COUNT, entered('0.000000123456789'))).toBe('{"arg":1.23456789e-7}');
    for (const text of ['0.12345678901234567890', `0.${'0'.repeat(400)}1`]) {
      expect(hasProblem(COUNT, entered(text)), text).toBe(true);
    }
  });

  it.each([1200, 700.555, 1e21, 1e-7, 9_007_199_254_740_992])(
    'is shown as proposed, and is unchanged until it is edited: %d (PE-2, SV-5)',
    (value) => {
      const form = formOf(value, { maxJson: '1100', decimals: 2 });
      const shown = JSON.stringify(value);
      expect(form.map(proposedInput)).toEqual(['42', shown]);
      expect(hasProblem(form, entered(shown))).toBe(false);
      expect(changesJson(form, entered(shown))).toBeUndefined();
    },
  );

  it('can be cleared only if the action does not set it (PE-2, SV-5)', () => {
    const unset = formOf(null, { maxJson: '1100' });
    expect(hasProblem(unset, entered(''))).toBe(false);
    expect(changesJson(unset, entered(''))).toBeUndefined();
    expect(changesJson(unset, entered('5'))).toBe('{"arg":5}');
  });
});

describe('a JSON text in the form', () => {
  const LIST = formOf([100, 250]);

  it.each(['[100, 2500', '[100', '', '{"to":}', "['a']", '[9007199254740993]', '[0.1, 1e400]'])(
    'cannot be sent unless it is valid and its numbers are exact: %j (PE-2, SV-5)',
    (text) => {
      expect(hasProblem(LIST, entered(text))).toBe(true);
      expect(changesJson(LIST, entered(text))).toBeUndefined();
    },
  );

  it.each([
    ['[100, 2500]', '{"arg":[100,2500]}'],
    ['{"to":[1e3,-0.50]}', '{"arg":{"to":[1000,-0.5]}}'],
    ['["9007199254740993", "a\\"1e400"]', '{"arg":["9007199254740993","a\\"1e400"]}'],
  ])('is sent as entered: %s (PE-2, SV-5)', (text, changes) => {
    expect(hasProblem(LIST, entered(text))).toBe(false);
    expect(changesJson(LIST, entered(text))).toBe(changes);
  });

  it('is unchanged while its value is the proposed value (PE-2, SV-5)', () => {
    expect(hasProblem(LIST, entered('[100,250]'))).toBe(false);
    expect(changesJson(LIST, entered('[100,250]'))).toBeUndefined();
  });
});

describe('the changes of the form', () => {
  it('do not contain an argument that is locked or equal to the proposed value (PE-2, SV-5)', () => {
    expect(changesJson(AMOUNT, { user_id: '7', arg: '1200.00' })).toBeUndefined();
    expect(changesJson(AMOUNT, { user_id: '7', arg: '900' })).toBe('{"arg":900}');
  });

  it('contain texts and checkboxes (PE-2, SV-5)', () => {
    expect(changesJson(formOf('late'), entered('850,50'))).toBe('{"arg":"850,50"}');
    expect(changesJson(formOf(true), { arg: false })).toBe('{"arg":false}');
  });
});
