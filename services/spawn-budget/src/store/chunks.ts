/** Rows that one statement carries at most: databases bound the parameters of a statement. */
const MAX_ROWS = 500;

/** The items in portions that one statement can carry. */
export function* chunks<T>(items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += MAX_ROWS)
    yield items.slice(start, start + MAX_ROWS);
}
