import type { Approval, EditableArgument } from '@writ/contracts/writ/approval/v1/approval_pb';
import { argumentsOf, edit, type HumanAnswer, isAboutAction } from './human.ts';

/** The parsed input line of a person: an answer, or a problem when the line is not a valid answer. */
export type Understood = { readonly answer: HumanAnswer } | { readonly problem: string };

const RESOLVE_CHOICES =
  'its result as a JSON object if it was executed, or n if it was not executed';

/** The question to a person, with their cap; it offers only answers that can succeed. */
export function questionOf(approval: Approval): string {
  if (!isAboutAction(approval)) {
    return `the outcome of this call is unknown: type ${RESOLVE_CHOICES}: `;
  }
  const { unchanged, amount } = offersOf(approval);
  if (amount === undefined) return unchanged ? 'approve (a) or reject (r)? ' : 'reject (r)? ';
  const value = `${amount.argument}${amount.maxJson === '' ? '' : ` of at most ${amount.maxJson}, your cap`}`;
  return unchanged
    ? `approve (a), approve with another ${value}, or reject (r)? `
    : `approve with an ${value}, or reject (r)? `;
}

/** Reads the line that a person typed; a problem is one sentence that says what is wrong and what is expected. */
export function understand(approval: Approval, line: string): Understood {
  const text = line.trim();
  const word = text.toLowerCase();
  if (!isAboutAction(approval)) return understandOutcome(text);
  if (text === '') return { problem: `No answer was given. Type ${choices(approval)}.` };
  if (word === 'r' || word === 'reject') return { answer: { kind: 'reject' } };
  if (word === 'a' || word === 'approve') return approveUnchanged(approval);
  const { amount } = offersOf(approval);
  if (amount === undefined || !/\d/.test(text)) {
    return { problem: `${quoted(text)} is not an answer. Type ${choices(approval)}.` };
  }
  return understandAmount(approval, amount, text);
}

function approveUnchanged(approval: Approval): Understood {
  if (offersOf(approval).unchanged) return { answer: { kind: 'approve' } };
  const refusal = approval.readerRights?.refusal || 'You may not approve this action.';
  return { problem: `${refusal} Type ${choices(approval)}.` };
}

/**
 * Parses the amount that replaces an argument. Only plain decimal numbers are accepted, not `1e3`, `0x10` or
 * `Infinity`.
 */
function understandAmount(
  approval: Approval,
  { argument, decimals }: EditableArgument,
  text: string,
): Understood {
  const isMoney = argument.endsWith('_usd');
  const plain = isMoney ? text.replace(/\s*usd$/i, '') : text;
  if (/^[$€£]|[$€£]$/.test(plain)) {
    return { problem: `${quoted(text)} is not a number. Type the amount without a currency sign.` };
  }
  if (/^[\d.,]*,[\d.,]*$/.test(plain)) {
    return {
      problem: `${quoted(text)} is not a number. Type the amount without thousands separators and with a decimal point, such as 700.50.`,
    };
  }
  if (!/^-?\d+(\.\d+)?$/.test(plain)) {
    return { problem: `${quoted(text)} is not a number. Type ${choices(approval)}.` };
  }
  const amount = Number(plain);
  if (amount <= 0) {
    return { problem: `${argument} must be greater than zero. Type ${choices(approval)}.` };
  }
  const places = plain.split('.')[1]?.length ?? 0;
  if (decimals !== undefined && places > decimals) {
    return { problem: `${argument} has at most ${decimals} decimals, but ${plain} has ${places}.` };
  }
  return { answer: edit(approval, { [argument]: amount }) };
}

function understandOutcome(text: string): Understood {
  if (text.toLowerCase() === 'n') return { answer: { kind: 'resolve', resultJson: undefined } };
  try {
    const result: unknown = JSON.parse(text);
    if (typeof result === 'object' && result !== null && !Array.isArray(result)) {
      return { answer: { kind: 'resolve', resultJson: text } };
    }
  } catch {
    // The text is not JSON; the problem below is returned.
  }
  return { problem: `${quoted(text)} is not an answer. Type ${RESOLVE_CHOICES}.` };
}

/** The answers that can succeed, as the object of "Type …". */
function choices(approval: Approval): string {
  const { unchanged, amount } = offersOf(approval);
  const most = amount === undefined || amount.maxJson === '' ? '' : ` of at most ${amount.maxJson}`;
  return [
    ...(unchanged ? ['a to approve'] : []),
    ...(amount === undefined ? [] : [`an ${amount.argument}${most}`]),
    'r to reject',
  ].join(' or ');
}

/**
 * Returns the answers that the policy permits the person: `unchanged` to approve the arguments as proposed, and
 * `amount`, the argument whose number the person may change.
 */
function offersOf({ readerRights, editableArguments, ...approval }: Approval): {
  readonly unchanged: boolean;
  readonly amount: EditableArgument | undefined;
} {
  const args = argumentsOf(approval);
  const { mayApprove = false, mayEdit = false } = readerRights ?? {};
  return {
    unchanged: mayApprove,
    amount: mayEdit
      ? editableArguments.find(({ argument }) => typeof args[argument] === 'number')
      : undefined,
  };
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}
