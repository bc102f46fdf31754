import { canonicalDigest, InvalidRequestError } from '@writ/kernel';

/** The position of a page: the sort key of the last row of the previous page. */
export type PagePosition = readonly string[];

const DIGEST_LENGTH = 16;
const MALFORMED = 'is malformed';

/** A page of a list, as requested. */
interface PageRequest {
  /** Zero for the default. */
  readonly pageSize: number;
  readonly pageToken: string;
}

/** A list that is read in pages. */
interface PagedList<R> {
  /** Number of rows of a page; default 50. */
  readonly defaultSize?: number;
  /**
   * The filters of the list; a page token is rejected if the filters differ from those of the request that returned it.
   */
  readonly filters: object;
  /** The position of a row: its sort key. */
  positionOf(row: R): PagePosition;
  /** Number of parts of a position. */
  readonly parts: number;
  /** Reads at most `limit` rows after a position; undefined = from the start. */
  read(after: PagePosition | undefined, limit: number): Promise<readonly R[]>;
}

/**
 * Returns one page of a list and the token of the next page; the token is empty when there is no next page.
 * @throws InvalidRequestError INVALID_PAGE_TOKEN; what `read` throws
 */
export async function readPage<R>(
  { pageSize, pageToken: token }: PageRequest,
  { defaultSize = 50, filters, positionOf, parts, read }: PagedList<R>,
): Promise<{ readonly page: readonly R[]; readonly nextPageToken: string }> {
  const limit = pageSize === 0 ? defaultSize : pageSize;
  const rows = await read(readPageToken(token, filters, parts), limit + 1);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const hasMore = rows.length > limit && last !== undefined;
  return { page, nextPageToken: hasMore ? pageToken(positionOf(last), filters) : '' };
}

/** A position that consists of a time and an id. */
export function pageAt(time: Date, id: string): PagePosition {
  return [time.toISOString(), id];
}

/**
 * Parses a position that consists of a time and an id.
 * @throws InvalidRequestError INVALID_PAGE_TOKEN
 */
export function readPageAt(
  position: PagePosition | undefined,
): { readonly time: Date; readonly id: string } | undefined {
  if (position === undefined) return undefined;
  const [time = '', id = ''] = position;
  return { time: pageTime(time), id };
}

/**
 * Returns an opaque token for the page after `position`; {@link readPageToken} accepts it only together with equal
 * filters.
 */
export function pageToken(position: PagePosition, filters: object): string {
  return Buffer.from(JSON.stringify([digestOf(filters), ...position])).toString('base64url');
}

/**
 * Returns the position in a page token, which must have `parts` parts; undefined for an empty token, which requests the
 * first page.
 * @throws InvalidRequestError INVALID_PAGE_TOKEN when the token is malformed or belongs to a request with other
 *   filters
 */
export function readPageToken(
  token: string,
  filters: object,
  parts: number,
): PagePosition | undefined {
  if (token === '') return undefined;
  const [digest, ...position] = decode(token);
  if (digest !== digestOf(filters)) {
    throw badToken('belongs to a request with other filters; request the first page again');
  }
  // An incomplete position would return the first page again, and a client that follows pages would never finish.
  if (position.length !== parts || position.includes('')) throw badToken(MALFORMED);
  return position;
}

/**
 * Parses a time of a position.
 * @throws InvalidRequestError INVALID_PAGE_TOKEN
 */
export function pageTime(text: string): Date {
  const time = new Date(text);
  if (!Number.isNaN(time.getTime()) && time.toISOString() === text) return time;
  throw badToken(MALFORMED);
}

/**
 * Parses a number of a position.
 * @throws InvalidRequestError INVALID_PAGE_TOKEN
 */
export function pageNumber(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw badToken(MALFORMED);
}

function decode(token: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (Array.isArray(value) && value.every((part) => typeof part === 'string')) return value;
  } catch (cause) {
    throw badToken(MALFORMED, cause);
  }
  throw badToken(MALFORMED);
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
