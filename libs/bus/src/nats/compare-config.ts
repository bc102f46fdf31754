import { PreconditionError } from '@writ/kernel';

/** A stream or consumer in an error message: `the stream X`. */
type Thing = `the ${'stream' | 'consumer'} ${string}`;

/**
 * Compares the requested configuration with that of the server: a server ignores settings that it does not support,
 * and an existing stream or consumer may be configured differently.
 * @throws PreconditionError BUS_FEATURE_UNSUPPORTED if the server does not support a setting, `mismatch`
 *   if it has a different value
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
    // Disabled settings may be absent from the response.
    if (isSame(want, value) || (value === undefined && isOff(want))) continue;
    if (value === undefined) {
      throw new PreconditionError(
        'BUS_FEATURE_UNSUPPORTED',
        `nats-server ${version} ignores ${field} of ${thing}: upgrade the server, or remove the setting.`,
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
