import { InvalidRequestError } from '../errors/errors.ts';

/** Maximum nesting depth, so that a circular reference causes an error. No value in Writ is nested this deeply. */
const MAX_DEPTH = 128;

/**
 * Returns the canonical JSON of a value (RFC 8785): keys sorted by UTF-16 code units, ECMAScript numbers, no
 * white space. Signatures and hashes cover its UTF-8 bytes (TG-4).
 * @throws InvalidRequestError NOT_SERIALIZABLE for values without a JSON form: undefined, NaN, a bigint, a
 * lone surrogate, an instance of a class, more than 128 nested levels
 */
export function canonicalJson(value: unknown): string {
  return write(value, 0);
}

function write(value: unknown, depth: number): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value === 'string') return writeString(value);
  if (typeof value === 'object' && depth < MAX_DEPTH) {
    if (Array.isArray(value)) {
      return `[${Array.from(value, (item: unknown) => write(item, depth + 1)).join(',')}]`;
    }
    if (isPlain(value)) return writeObject(value, depth + 1);
  }
  throw notJson(depth < MAX_DEPTH ? `it contains ${describe(value)}` : 'it is nested too deeply');
}

function writeObject(object: object, depth: number): string {
  const members = object as Readonly<Record<string, unknown>>;
  const texts: string[] = [];
  for (const key of Object.keys(members).sort()) {
    texts.push(`${writeString(key)}:${write(members[key], depth)}`);
  }
  return `{${texts.join(',')}}`;
}

function writeString(text: string): string {
  if (text.isWellFormed()) return JSON.stringify(text);
  throw notJson('it contains a lone surrogate');
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function describe(value: unknown): string {
  if (typeof value === 'number') return 'a number that is not finite';
  return typeof value === 'object' ? 'an instance of a class' : `a value of type ${typeof value}`;
}

function notJson(why: string): InvalidRequestError {
  return new InvalidRequestError('NOT_SERIALIZABLE', `The value has no JSON form: ${why}.`);
}
