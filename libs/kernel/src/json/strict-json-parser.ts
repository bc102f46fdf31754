import { InvalidRequestError } from '../errors/errors.ts';
import type { ReasonOf } from '../errors/reasons.ts';
import type { JsonArray, JsonObject, JsonValue } from './json-value.ts';

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const INTEGER = /^-?\d+$/;
const NOT_A_NUMBER = /-?(?:NaN|Infinity)/y;
const HEX4 = /[0-9a-fA-F]{4}/y;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/**
 * Parses one text for `parseJsonStrict`. It is written by hand, because JSON.parse does not report duplicate keys.
 * `maxDepth` limits its recursion.
 */
export class StrictJsonParser {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #field: string;
  #at = 0;

  constructor(text: string, maxDepth: number, field: string) {
    this.#text = text;
    this.#maxDepth = maxDepth;
    this.#field = field;
  }

  /** Parses the whole text. Throws InvalidRequestError naming the field and the position. */
  parse(): JsonValue {
    const value = this.#value(0);
    if (this.#peek() !== '') throw this.#bad('INVALID_JSON', 'has content after the value');
    return value;
  }

  #value(depth: number): JsonValue {
    switch (this.#peek()) {
      case '{':
        return this.#object(this.#deeper(depth));
      case '[':
        return this.#array(this.#deeper(depth));
      case '"':
        return this.#string();
      case 't':
        return this.#word('true', true);
      case 'f':
        return this.#word('false', false);
      case 'n':
        return this.#word('null', null);
      default:
        return this.#number();
    }
  }

  #object(depth: number): JsonObject {
    const object: Record<string, JsonValue> = {};
    if (this.#takesEnd('}')) return object;
    do {
      if (this.#peek() !== '"') throw this.#bad('INVALID_JSON', 'is missing a key');
      const start = this.#at;
      const key = this.#string();
      if (key === '__proto__') {
        throw this.#bad('JSON_FORBIDDEN_KEY', 'has a key named __proto__', start);
      }
      if (Object.hasOwn(object, key)) {
        throw this.#bad('JSON_DUPLICATE_KEY', 'has the same key twice in one object', start);
      }
      if (this.#peek() !== ':') throw this.#bad('INVALID_JSON', 'is missing a colon after a key');
      this.#at += 1;
      object[key] = this.#value(depth);
    } while (this.#takesComma('}'));
    return object;
  }

  #array(depth: number): JsonArray {
    const array: JsonValue[] = [];
    if (this.#takesEnd(']')) return array;
    do array.push(this.#value(depth));
    while (this.#takesComma(']'));
    return array;
  }

  #string(): string {
    const start = this.#at;
    this.#at += 1;
    let value = '';
    for (;;) {
      value += this.#plainRun();
      const next = this.#text.charAt(this.#at);
      this.#at += 1;
      if (next === '"') break;
      if (next !== '\\')
        throw this.#bad(
          'INVALID_JSON',
          'has a string that is unterminated or contains an unescaped control character',
          start,
        );
      value += this.#escape();
    }
    if (value.isWellFormed()) return value;
    throw this.#bad('JSON_LONE_SURROGATE', 'has a string with a lone surrogate', start);
  }

  #plainRun(): string {
    const start = this.#at;
    for (let code = this.#text.charCodeAt(this.#at); code >= 0x20; ) {
      if (code === 0x22 || code === 0x5c) break;
      this.#at += 1;
      code = this.#text.charCodeAt(this.#at);
    }
    return this.#text.slice(start, this.#at);
  }

  #escape(): string {
    const letter = this.#text.charAt(this.#at);
    this.#at += 1;
    if (letter === 'u') {
      const hex = this.#match(HEX4);
      if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    }
    const character = Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
    if (character === undefined)
      throw this.#bad('INVALID_JSON', 'has an unknown escape in a string');
    return character;
  }

  #number(): number {
    const start = this.#at;
    const token = this.#match(NUMBER);
    if (token === undefined) {
      if (this.#match(NOT_A_NUMBER) === undefined) {
        throw this.#bad('INVALID_JSON', 'is not well-formed');
      }
      throw this.#bad('JSON_INVALID_NUMBER', 'has NaN or Infinity', start);
    }
    const value = Number(token);
    if (!Number.isFinite(value)) {
      throw this.#bad('JSON_INVALID_NUMBER', 'has a number out of range', start);
    }
    // Includes 1e20, whose canonical form is an integer that other parsers would round.
    const readsAsInteger = INTEGER.test(token) || INTEGER.test(String(value));
    if (readsAsInteger && !Number.isSafeInteger(value)) {
      throw this.#bad(
        'JSON_INVALID_NUMBER',
        'has an integer outside ±(2^53 - 1); send it as a string',
        start,
      );
    }
    return value;
  }

  #word<T extends JsonValue>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at))
      throw this.#bad('INVALID_JSON', 'is not well-formed');
    this.#at += word.length;
    return value;
  }

  #deeper(depth: number): number {
    if (depth < this.#maxDepth) {
      this.#at += 1;
      return depth + 1;
    }
    throw this.#bad('JSON_TOO_DEEP', `is nested deeper than ${this.#maxDepth} levels`);
  }

  #takesEnd(end: string): boolean {
    if (this.#peek() !== end) return false;
    this.#at += 1;
    return true;
  }

  #takesComma(end: string): boolean {
    if (this.#takesEnd(end)) return false;
    if (this.#peek() !== ',') throw this.#bad('INVALID_JSON', 'is missing a comma');
    this.#at += 1;
    return true;
  }

  /** The next character after white space, without consuming it; empty at the end. */
  #peek(): string {
    for (;;) {
      const next = this.#text.charAt(this.#at);
      if (next !== ' ' && next !== '\n' && next !== '\r' && next !== '\t') return next;
      this.#at += 1;
    }
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #bad(reason: ReasonOf<'invalid_argument'>, what: string, at = this.#at): InvalidRequestError {
    return new InvalidRequestError(reason, `${this.#field} ${what} (at character ${at}).`, {
      field: this.#field,
      offset: String(at),
    });
  }
}
