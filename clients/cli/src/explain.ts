import { isWritError } from '@writ/kernel';

/** What a person can do next, by the reason of an error. */
const NEXT: Readonly<Record<string, string>> = {
  TOKEN_INVALID: 'Set WRIT_API_KEY to a key of this platform; `writ keys create` makes one.',
};

const PUBLIC_API =
  'Is Writ running there? Set --address or WRIT_ADDRESS to the address of its public API.';

/**
 * An error in one sentence, with what to do next where that is known.
 * @param unavailable what to do when the server does not answer; default: that of the public API
 */
export function explain(error: unknown, unavailable = PUBLIC_API): string {
  const message = error instanceof Error ? error.message : String(error);
  const sentence = message.replace(/^connect ECONNREFUSED (\S+)$/, 'Nothing answers at $1.');
  const next = isWritError(error) ? nextAfter(error.reason, unavailable) : undefined;
  if (next === undefined) return sentence;
  return `${sentence}${/[.!?]$/.test(sentence) ? '' : '.'} ${next}`;
}

function nextAfter(reason: string, unavailable: string): string | undefined {
  return reason === 'UNAVAILABLE' ? unavailable : NEXT[reason];
}
