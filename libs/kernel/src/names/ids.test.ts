import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assertId, ID_PATTERN, isId } from './id-pattern.ts';
import { derivedId, newId } from './ids.ts';

describe('ids', () => {
  it('contain only a-z, 0-9, underscore and hyphen, at most 64 characters (SYS-6)', () => {
    expect(isId('run_1-a')).toBe(true);
    for (const bad of ['', 'A', 'a b', 'a\n', 'ä', 'a'.repeat(65), 7, undefined]) {
      expect(isId(bad)).toBe(false);
    }
  });

  it('are rejected with the name of the field when malformed (SYS-3)', () => {
    expect(assertId('t1', 'tenant_id')).toBe('t1');
    expect(() => assertId('NO', 'tenant_id')).toThrow(/tenant_id/);
    expect(() => assertId('NO', 'tenant_id')).toThrow(
      expect.objectContaining({ reason: 'INVALID_ID', metadata: { field: 'tenant_id' } }),
    );
  });

  it('sort by creation time, also within one millisecond', () => {
    const made = Array.from({ length: 2000 }, () => newId('run'));
    expect(made).toEqual([...made].sort());
    expect(new Set(made).size).toBe(made.length);
    for (const id of made) expect(id).toMatch(/^run_[0-9a-hjkmnp-tv-z]{26}$/);
  });

  it('are derived deterministically and uniquely from their parts (HK-1)', () => {
    const parts = fc.array(fc.string(), { maxLength: 4 });
    fc.assert(
      fc.property(parts, parts, (left, right) => {
        const same = JSON.stringify(left) === JSON.stringify(right);
        expect(derivedId('evt', ...left) === derivedId('evt', ...right)).toBe(same);
        expect(derivedId('evt', ...left)).toMatch(ID_PATTERN);
      }),
    );
    expect(derivedId('evt', 'ab', 'c')).not.toBe(derivedId('evt', 'a', 'bc'));
    // Derived ids are stored, so a later version must derive the same id.
    expect(derivedId('evt', 'run_1', 'ä', 'c')).toBe('evt_1fckb746rqrr3502n0543w03my');
  });

  it('reject an invalid prefix', () => {
    expect(() => newId('Run')).toThrow(expect.objectContaining({ reason: 'INVALID_ID_PREFIX' }));
  });
});
