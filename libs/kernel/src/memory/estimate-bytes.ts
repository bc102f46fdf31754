/** Estimated size of a number or a date, and the overhead of every other value. */
const SCALAR_BYTES = 16;
/** Estimated size of an entry of a map or set of ids. */
const ENTRY_BYTES = 128;

/** Estimates the memory that a value takes, in bytes. For maps and sets only the number of entries is used. */
export function estimateBytes(value: unknown): number {
  if (typeof value === 'string') return SCALAR_BYTES + value.length;
  if (typeof value !== 'object' || value === null || value instanceof Date) return SCALAR_BYTES;
  if (value instanceof Uint8Array) return SCALAR_BYTES + value.byteLength;
  if (value instanceof Map || value instanceof Set) return SCALAR_BYTES + value.size * ENTRY_BYTES;
  let bytes = SCALAR_BYTES;
  for (const member of Object.values(value)) bytes += estimateBytes(member);
  return bytes;
}
