import type { Approval, ArgumentCap } from '@writ/contracts/writ/approval/v1/approval_pb';
import { argumentsOf, edit, exceededCaps, type HumanAnswer, isAboutAction } from './human.ts';

/** What a line that a person typed means: an answer, or why it is none. */
export type Understood = { readonly answer: HumanAnswer } | { readonly problem: string };

const RESOLVE_CHOICES =
  'its result as a JSON object if it was executed, or n if it was not executed';

/** The question to a person, with their cap; it offers only answers that the cap permits. */
export function questionOf(approval: Approval): string {
  if (!isAboutAction(approval)) {
    return `the outcome of this call is unknown: type ${RESOLVE_CHOICES}: `;
  }
  const cap = capOf(approval);
  if (cap === undefined) return 'approve (a) or reject (r)? ';
  const another = `${cap.argument} of at most ${cap.maxJson}, your cap`;
  return canApprove(approval)
    ? `approve (a), approve with another ${another}, or reject (r)? `
    : `approve with an ${another}, or reject (r)? `;
}

/** Reads the line that a person typed; a problem is one sentence that says what is wrong and what is expected. */
export function understand(approval: Approval, line: string): Understood {
  const text = line.trim();
  const word = text.toLowerCase();
  if (!isAboutAction(approval)) return understandOutcome(text);
  if (text === '') return { problem: `No answer was given. Type ${choices(approval)}.` };
  if (word === 'r' || word === 'reject') return { answer: { kind: 'reject' } };
  if (word === 'a' || word === 'approve') return approveUnchanged(approval);
  const cap = capOf(approval);
  if (cap === undefined || !/\d/.test(text)) {
    return { problem: `${quoted(text)} is not an answer. Type ${choices(approval)}.` };
  }
  return understandAmount(approval, cap.argument, text);
}

function approveUnchanged(approval: Approval): Understood {
  if (canApprove(approval)) return { answer: { kind: 'approve' } };
  const above = exceededCaps(approval).map(
    ({ argument, maxJson }) =>
      `${argument} ${String(argumentsOf(approval)[argument])} is above your cap of ${maxJson}`,
  );
  return { problem: `${above.join(', and ')}. Type ${choices(approval)}.` };
}

/** Only plain decimal numbers are amounts: `1e3`, `0x10` and `Infinity` are not. */
function understandAmount(approval: Approval, argument: string, text: string): Understood {
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
  if (isMoney && /\.\d\d\d/.test(plain)) {
    return {
      problem: `${plain} has fractions of a cent. Type an amount with at most two decimals.`,
    };
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
    // Explained below.
  }
  return { problem: `${quoted(text)} is not an answer. Type ${RESOLVE_CHOICES}.` };
}

/** The answers that can succeed, as the object of "Type …". */
function choices(approval: Approval): string {
  const cap = capOf(approval);
  const amount = cap === undefined ? [] : [`an ${cap.argument} of at most ${cap.maxJson}`];
  const unchanged = canApprove(approval) ? ['a to approve'] : [];
  return [...unchanged, ...amount, 'r to reject'].join(' or ');
}

function canApprove(approval: Approval): boolean {
  return exceededCaps(approval).length === 0;
}

/** The capped argument that the action has. */
function capOf(approval: Approval): ArgumentCap | undefined {
  const args = argumentsOf(approval);
  return approval.caps.find(({ argument }) => argument in args);
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}
