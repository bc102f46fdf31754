import { create } from '@bufbuild/protobuf';
import { ApprovalKind, ApprovalSchema } from '@writ/contracts/writ/approval/v1/approval_pb';
import { describe, expect, it } from 'vitest';
import { questionOf, understand } from './questions.ts';

const CAPPED = { argument: 'amount_usd', maxJson: '800', decimals: 2 };

/** An approval of a refund for a person with a cap of 800 USD, or with other rights. */
function refund(amount: number, editableArguments = [CAPPED], mayEdit = true) {
  const argumentsJson = JSON.stringify({ amount_usd: amount, user_id: 42 });
  const mayApprove = amount <= 800;
  return create(ApprovalSchema, {
    kind: ApprovalKind.ACTION,
    editableArguments,
    readerRights: { mayApprove, mayEdit, refusal: mayApprove ? '' : 'amount_usd is too high.' },
    action: { kind: { case: 'tool', value: { tool: 'issue_refund', argumentsJson } } },
  });
}

function problem(amount: number, line: string): string {
  const understood = understand(refund(amount), line);
  if ('problem' in understood) return understood.problem;
  throw new Error(`${line} was understood as ${JSON.stringify(understood.answer)}.`);
}

describe('the question to a person', () => {
  it('shows the cap and offers only what the cap permits (SV-5)', () => {
    expect(questionOf(refund(1200))).toBe(
      'approve with an amount_usd of at most 800, your cap, or reject (r)? ',
    );
    expect(questionOf(refund(500))).toBe(
      'approve (a), approve with another amount_usd of at most 800, your cap, or reject (r)? ',
    );
    expect(questionOf(refund(500, []))).toBe('approve (a) or reject (r)? ');
    expect(questionOf(refund(1200, [], false))).toBe('reject (r)? ');
    expect(questionOf(refund(500, [{ ...CAPPED, maxJson: '' }]))).toBe(
      'approve (a), approve with another amount_usd, or reject (r)? ',
    );
  });
});

describe('an answer at the terminal', () => {
  it.each([
    ['', 'No answer was given. Type an amount_usd of at most 800 or r to reject.'],
    ['yes', '"yes" is not an answer. Type an amount_usd of at most 800 or r to reject.'],
    ['a', 'amount_usd is too high. Type an amount_usd of at most 800 or r to reject.'],
    ['$700', '"$700" is not a number. Type the amount without a currency sign.'],
    ['700,50', 'with a decimal point, such as 700.50.'],
    ['1,000', 'without thousands separators'],
    ['700.555', 'amount_usd has at most 2 decimals, but 700.555 has 3.'],
    ['0', 'amount_usd must be greater than zero.'],
    ['-5', 'amount_usd must be greater than zero.'],
    ['1e2', '"1e2" is not a number.'],
    ['0x10', '"0x10" is not a number.'],
  ])('%j is rejected with an explanation (SV-5, PE-2)', (line, sentence) => {
    expect(problem(1200, line)).toContain(sentence);
  });

  it('is an amount, an approval within the cap, or a rejection (SV-5)', () => {
    const edited = { kind: 'edit', argumentsJson: '{"amount_usd":700.5,"user_id":42}' };
    expect(understand(refund(1200), ' 700.50 USD ')).toEqual({ answer: edited });
    expect(understand(refund(500), 'A')).toEqual({ answer: { kind: 'approve' } });
    expect(understand(refund(1200), 'reject')).toEqual({ answer: { kind: 'reject' } });
    expect(understand(refund(500, []), '400')).toEqual({
      problem: '"400" is not an answer. Type a to approve or r to reject.',
    });
  });

  it('states whether a call with an unknown outcome was executed, and its result (TG-5)', () => {
    const unknown = create(ApprovalSchema, { ...refund(500), kind: ApprovalKind.RESOLVE });
    expect(questionOf(unknown)).toContain('the outcome of this call is unknown');
    expect(understand(unknown, 'n')).toEqual({
      answer: { kind: 'resolve', resultJson: undefined },
    });
    expect(understand(unknown, '{"status":"ok"}')).toEqual({
      answer: { kind: 'resolve', resultJson: '{"status":"ok"}' },
    });
    expect(understand(unknown, 'a')).toMatchObject({
      problem: expect.stringContaining('"a" is not an answer.'),
    });
  });
});
