import { readFileSync } from 'node:fs';
import { isStopReason } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { stopSentence } from './stop-sentence.ts';

/** Returns the stop reasons in the table of the reference, with an example value for each variable part. */
function documentedReasons(): string[] {
  const page = new URL('../../../../../docs/reference/stop-reasons.md', import.meta.url);
  const cells = readFileSync(page, 'utf8').matchAll(/^\| (`[^|]+`) \|/gm);
  return [...cells].flatMap(([, cell = '']) => {
    const names = [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    const family = names[0]?.split(':')[0] ?? '';
    return names.map((name) =>
      (name.startsWith(':') ? family + name : name).replace(/<\w+>/, 'some_part'),
    );
  });
}

describe('the sentence of a stop reason', () => {
  it('exists for every stop reason of the reference (SV-7)', () => {
    const reasons = documentedReasons();
    expect(reasons.length).toBeGreaterThan(25);
    for (const reason of reasons) {
      expect(isStopReason(reason), reason).toBe(true);
      const sentence = stopSentence(reason);
      if (['success', 'closed'].includes(reason)) expect(sentence).toBe('');
      else expect(sentence, reason).toMatch(/^[A-Z].*\.$/);
      expect(sentence, reason).not.toContain('The run stopped:');
    }
  });

  it('names the action, and explains a reason code in upper or lower case (SV-7)', () => {
    const refund = { kind: 'tool', name: 'issue_refund', args: {} } as const;
    expect(stopSentence('human_rejected', refund)).toBe('A person rejected issue_refund.');
    expect(stopSentence('supervisor_block:too_much', refund)).toBe(
      'Policy blocked issue_refund: too_much.',
    );
    expect(stopSentence('error:unknown_model')).toBe('The model catalog has no such model.');
    expect(stopSentence('error:UNKNOWN_MODEL')).toBe('The model catalog has no such model.');
    expect(stopSentence('error:out_of_hours')).toBe('The run failed: out_of_hours.');
  });
});
