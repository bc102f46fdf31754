import { hash, randomFillSync } from 'node:crypto';
import { InvalidRequestError } from '../errors/errors.ts';

/** The lower-case Crockford alphabet: preserves order and has no i, l, o or u. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
/** The digits of JavaScript's base 32 that differ from the Crockford alphabet. */
const OTHER_DIGITS = /[i-v]/g;
const BODY_LENGTH = 26;
const RANDOM_BITS = 80n;
const PREFIX_PATTERN = /^[a-z][a-z0-9]{0,15}$/;

/** Prefetched random bytes, because reading them from the system takes longer than the rest of generating an id. */
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
 * Generates an id: `prefix`, an underscore and 26 characters that sort by creation time (48 bits of
 * milliseconds, 80 random bits), strictly increasing within one process even when the clock is set back.
 * @throws InvalidRequestError INVALID_ID_PREFIX
 */
export function newId(prefix: string): string {
  const now = BigInt(Date.now());
  if (now > lastTime) {
    lastTime = now;
    // The top bit is zero, so that increments within one millisecond cannot overflow.
    lastRandom = randomBits(10) >> 1n;
  } else {
    lastRandom += 1n + randomBits(4);
  }
  return withPrefix(prefix, encode((lastTime << RANDOM_BITS) | lastRandom));
}

/**
 * Derives an id deterministically from `parts`: `prefix`, an underscore and 130 bits of SHA-256 in 26
 * characters. Used for instances, call ids and event ids, so that a replay or retry derives the same id (HK-1). Part
 * boundaries matter: ('ab','c') and ('a','bc') differ.
 * @throws InvalidRequestError INVALID_ID_PREFIX
 */
export function derivedId(prefix: string, ...parts: readonly string[]): string {
  let text = '';
  for (const part of parts) text += `${Buffer.byteLength(part)}:${part}`;
  return withPrefix(prefix, firstDigits(hash('sha256', text, 'buffer')));
}

/** Returns the first 130 bits of `bytes` as text, with five bits per character. */
function firstDigits(bytes: Uint8Array): string {
  let digits = '';
  let bits = 0;
  let count = 0;
  for (const byte of bytes) {
    bits = (bits << 8) | byte;
    for (count += 8; count >= 5; count -= 5) {
      if (digits.length === BODY_LENGTH) return digits;
      digits += ALPHABET.charAt((bits >> (count - 5)) & 31);
    }
    bits &= 31;
  }
  return digits;
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
