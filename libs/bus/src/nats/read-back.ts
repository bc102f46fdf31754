import { PreconditionError } from '@writ/kernel';

/** What a stream or a consumer is, for a sentence: `the stream X`. */
type Thing = `the ${'stream' | 'consumer'} ${string}`;

/**
 * Compares what is wanted with what the server says it has: a server answers yes to settings that it
 * does not know, and what exists already may be set otherwise.
 * @throws PreconditionError BUS_FEATURE_UNSUPPORTED when the server does not know a setting, `mismatch`
 *   when it has another value
 */
export function compareConfig(
  thing: Thing,
  wanted: Readonly<Record<string, unknown>>,
  found: object,
  {
    version,
    mismatch,
  }: {
    readonly version: string;
    readonly mismatch: 'BUS_STREAM_MISMATCH' | 'BUS_CONSUMER_MISMATCH';
  },
): void {
  const has = new Map<string, unknown>(Object.entries(found));
  for (const [field, want] of Object.entries(wanted)) {
    const value = has.get(field);
    // What is off may be left out of an answer.
    if (isSame(want, value) || (value === undefined && isOff(want))) continue;
    if (value === undefined) {
      throw new PreconditionError(
        'BUS_FEATURE_UNSUPPORTED',
        `nats-server ${version} ignores ${field} of ${thing}: it needs a newer one, or do without.`,
        { field, version },
      );
    }
    throw new PreconditionError(
      mismatch,
      `${field} of ${thing} is ${JSON.stringify(value)} on the NATS server and must be ${JSON.stringify(want)}.`,
      { field },
    );
  }
}

function isSame(want: unknown, value: unknown): boolean {
  if (Array.isArray(want) && Array.isArray(value)) {
    return JSON.stringify(want.toSorted()) === JSON.stringify(value.toSorted());
  }
  return want === value;
}

function isOff(want: unknown): boolean {
  return want === false || want === 0 || want === '';
}
