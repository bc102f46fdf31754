import { canonicalDigest, InvalidRequestError } from '@writ/kernel';

/** Where the next page begins: the sort key of the last row of this one. */
export type PagePosition = readonly string[];

const DIGEST_LENGTH = 16;
const NOT_OURS = 'is not one that this service gave';

/** An opaque token for the page after `position`, good only for a request with the same filters. */
export function pageToken(position: PagePosition, filters: object): string {
  return Buffer.from(JSON.stringify([digestOf(filters), ...position])).toString('base64url');
}

/**
 * Where a page begins, in so many `parts`; undefined for the first.
 * @throws InvalidRequestError INVALID_PAGE_TOKEN when it is not one of ours, or of another request
 */
export function readPageToken(
  token: string,
  filters: object,
  parts: number,
): PagePosition | undefined {
  if (token === '') return undefined;
  const [digest, ...position] = decode(token);
  if (digest !== digestOf(filters)) {
    throw badToken('belongs to a request with other filters; ask for the first page again');
  }
  // Half a position would be the first page again, and a caller that follows pages never done.
  if (position.length !== parts || position.includes('')) throw badToken(NOT_OURS);
  return position;
}

/**
 * A moment in a page's position.
 * @throws InvalidRequestError INVALID_PAGE_TOKEN
 */
export function pageTime(text: string): Date {
  const time = new Date(text);
  if (!Number.isNaN(time.getTime()) && time.toISOString() === text) return time;
  throw badToken(NOT_OURS);
}

/**
 * A number in a page's position.
 * @throws InvalidRequestError INVALID_PAGE_TOKEN
 */
export function pageNumber(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw badToken(NOT_OURS);
}

function decode(token: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (Array.isArray(value) && value.every((part) => typeof part === 'string')) return value;
  } catch (cause) {
    throw badToken(NOT_OURS, cause);
  }
  throw badToken(NOT_OURS);
}

function digestOf(filters: object): string {
  return canonicalDigest(filters).slice(0, DIGEST_LENGTH);
}

function badToken(why: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError(
    'INVALID_PAGE_TOKEN',
    `page_token ${why}.`,
    { field: 'page_token' },
    { cause },
  );
}
