import { isWritError } from '@writ/kernel';

/** Fixes by the reason of an error. */
const NEXT: Readonly<Record<string, string>> = {
  TOKEN_INVALID: 'Set WRIT_API_KEY to a key of this platform; `writ keys create` creates one.',
};

const PUBLIC_API =
  'Is Writ running there? Set --address or WRIT_ADDRESS to the address of its public API.';

/**
 * Returns the message of an error, followed by a fix if one is known.
 * @param unavailable the fix when the server does not respond; default: the fix for the public API
 */
export function explain(error: unknown, unavailable = PUBLIC_API): string {
  const message = error instanceof Error ? error.message : String(error);
  const sentence = message.replace(/^connect ECONNREFUSED (\S+)$/, 'No server responds at $1.');
  const next = isWritError(error) ? nextAfter(error.reason, unavailable) : undefined;
  if (next === undefined) return sentence;
  return `${sentence}${/[.!?]$/.test(sentence) ? '' : '.'} ${next}`;
}

function nextAfter(reason: string, unavailable: string): string | undefined {
  return reason === 'UNAVAILABLE' ? unavailable : NEXT[reason];
}
