import { InvalidArgumentError } from 'commander';

/** One page of a list. */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly nextPageToken: string;
}

const MAX_PAGE = 500;

/** Reads up to `limit` rows from as many pages as needed; `more` is true if further rows exist. */
export async function readRows<T>(
  limit: number,
  read: (page: { readonly pageSize: number; readonly pageToken: string }) => Promise<Page<T>>,
): Promise<{ readonly rows: T[]; readonly more: boolean }> {
  const rows: T[] = [];
  let pageToken = '';
  do {
    const page = await read({ pageSize: Math.min(limit - rows.length, MAX_PAGE), pageToken });
    rows.push(...page.rows);
    pageToken = page.nextPageToken;
  } while (pageToken !== '' && rows.length < limit);
  return { rows, more: pageToken !== '' };
}

/** Reads the value of `--limit`. */
export function limitOf(value: string): number {
  const limit = Number(value);
  if (Number.isInteger(limit) && limit > 0) return limit;
  throw new InvalidArgumentError('It must be a whole number of at least 1.');
}
