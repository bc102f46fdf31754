import { canonicalDigest, InvalidRequestError } from '@writ/kernel';

/** Where the next page begins: the sort key of the last row of this one. */
export type PagePosition = readonly string[];

const DIGEST_LENGTH = 16;

/** An opaque token for the page after `position`, good only for a request with the same filters. */
export function pageToken(position: PagePosition, filters: object): string {
  return Buffer.from(JSON.stringify([digestOf(filters), ...position])).toString('base64url');
}

/**
 * Where a page begins; undefined for the first.
 * @throws InvalidRequestError BAD_PAGE_TOKEN when it is not one of ours, or of another request
 */
export function readPageToken(token: string, filters: object): PagePosition | undefined {
  if (token === '') return undefined;
  const [digest, ...position] = decode(token);
  if (digest === digestOf(filters) && position.length > 0) return position;
  throw badToken('belongs to a request with other filters; ask for the first page again');
}

/**
 * A moment in a page's position.
 * @throws InvalidRequestError BAD_PAGE_TOKEN
 */
export function pageTime(text: string): Date {
  const time = new Date(text);
  if (!Number.isNaN(time.getTime())) return time;
  throw badToken('is not one that this service gave');
}

function decode(token: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (Array.isArray(value) && value.every((part) => typeof part === 'string')) return value;
  } catch (cause) {
    throw badToken('is not one that this service gave', cause);
  }
  throw badToken('is not one that this service gave');
}

function digestOf(filters: object): string {
  return canonicalDigest(filters).slice(0, DIGEST_LENGTH);
}

function badToken(why: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError(
    'BAD_PAGE_TOKEN',
    `page_token ${why}.`,
    { field: 'page_token' },
    { cause },
  );
}
