import { isWritError } from '@writ/kernel';

/** What a person can do next, by the reason of an error. */
const NEXT: Readonly<Record<string, string>> = {
  UNAVAILABLE:
    'Is Writ running there? Set --address or WRIT_ADDRESS to the address of its public API.',
  TOKEN_INVALID: 'Set WRIT_API_KEY to a key of this platform; `writ keys create` makes one.',
};

/** An error in one sentence, with what to do next where that is known. */
export function explain(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const sentence = message.replace(/^connect ECONNREFUSED (\S+)$/, 'Nothing answers at $1.');
  const next = isWritError(error) ? NEXT[error.reason] : undefined;
  if (next === undefined) return sentence;
  return `${sentence}${/[.!?]$/.test(sentence) ? '' : '.'} ${next}`;
}
