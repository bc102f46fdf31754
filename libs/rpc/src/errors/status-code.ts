import type { ErrorKind } from '@writ/kernel';

/** The gRPC status codes by number; Connect uses the same numbers. */
const NAMES = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const;

const CODES: Readonly<Record<ErrorKind, number>> = {
  cancelled: 1,
  invalid_argument: 3,
  deadline_exceeded: 4,
  not_found: 5,
  already_exists: 6,
  permission_denied: 7,
  resource_exhausted: 8,
  failed_precondition: 9,
  aborted: 10,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  data_loss: 15,
  unauthenticated: 16,
};

const KINDS: ReadonlyMap<number, ErrorKind> = new Map([
  ...(Object.entries(CODES) as [ErrorKind, number][]).map(([kind, code]) => [code, kind] as const),
  // OUT_OF_RANGE: other servers use it for invalid input.
  [11, 'invalid_argument'],
]);

/** Returns the gRPC status code of an error kind (SYS-3). */
export function statusCode(kind: ErrorKind): number {
  return CODES[kind];
}

/** Returns the error kind of a gRPC status code; `internal` for UNKNOWN and undefined codes. */
export function errorKind(code: number): ErrorKind {
  return KINDS.get(code) ?? 'internal';
}

/** Returns the name of a gRPC status code, such as `NOT_FOUND`. */
export function statusName(code: number): string {
  return NAMES[code] ?? 'UNKNOWN';
}
