import { createHash, randomFillSync } from 'node:crypto';
import { InvalidRequestError } from './errors.ts';

/** What every id on the wire, in rows and in subjects looks like (SYS-6). */
export const ID_PATTERN = /^[a-z0-9_-]{1,64}$/;

/** What a tool may be called: the form that model APIs accept as a function name. */
export const TOOL_NAME_PATTERN = /^[a-zA-Z0-9_-]{1,64}$/;

/** The lower-case Crockford alphabet: sorts as its values do and has no i, l, o or u. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
/** What JavaScript writes otherwise in base 32: it leaves out no letter. */
const OTHER_DIGITS = /[i-v]/g;
const BODY_LENGTH = 26;
const RANDOM_BITS = 80n;
const PREFIX_PATTERN = /^[a-z][a-z0-9]{0,15}$/;

/** Whether `value` is a well-formed id (SYS-6). */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && ID_PATTERN.test(value);
}

/**
 * Returns `value` when it is a well-formed id (SYS-6).
 * @throws InvalidRequestError INVALID_ID naming `field`
 */
export function assertId(value: unknown, field: string): string {
  if (isId(value)) return value;
  throw new InvalidRequestError(
    'INVALID_ID',
    `${field} must be 1 to 64 characters from a-z, 0-9, underscore and hyphen.`,
    { field },
  );
}

/** Drawn from the system in advance, since asking it takes longer than all the rest of an id. */
const randomness = Buffer.alloc(4_096);
let drawn = randomness.length;

function randomBits(bytes: number): bigint {
  if (drawn + bytes > randomness.length) {
    randomFillSync(randomness);
    drawn = 0;
  }
  drawn += bytes;
  return BigInt(`0x${randomness.toString('hex', drawn - bytes, drawn)}`);
}

let lastTime = 0n;
let lastRandom = 0n;

/**
 * A fresh id: `prefix`, an underscore and 26 characters that sort by time of making (48 bits of
 * milliseconds, 80 random bits), strictly rising within one process even when the clock steps back.
 */
export function newId(prefix: string): string {
  const now = BigInt(Date.now());
  if (now > lastTime) {
    lastTime = now;
    // The top bit stays free, so that counting up within one millisecond cannot overflow.
    lastRandom = randomBits(10) >> 1n;
  } else {
    lastRandom += 1n + randomBits(4);
  }
  return withPrefix(prefix, encode((lastTime << RANDOM_BITS) | lastRandom));
}

/**
 * The same id for the same parts, always: `prefix`, an underscore and 130 bits of SHA-256 in 26
 * characters. Used for instances, call ids and event ids, so that a repeat names the same thing
 * (HK-1). Parts are counted, so ('ab','c') and ('a','bc') differ.
 */
export function derivedId(prefix: string, ...parts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  const bits = BigInt(`0x${hash.digest('hex')}`) >> 126n;
  return withPrefix(prefix, encode(bits));
}

function withPrefix(prefix: string, body: string): string {
  if (PREFIX_PATTERN.test(prefix)) return `${prefix}_${body}`;
  throw new InvalidRequestError(
    'INVALID_ID_PREFIX',
    'The prefix of an id must be a lower-case word of at most 16 characters.',
    { field: 'prefix' },
  );
}

function encode(bits: bigint): string {
  return bits.toString(32).padStart(BODY_LENGTH, '0').replace(OTHER_DIGITS, letterOf);
}

function letterOf(digit: string): string {
  return ALPHABET.charAt(Number.parseInt(digit, 32));
}
