import { ToolFailure } from '@writ/kernel';

const MAX_LENGTH = 1_000;
const MAX_DEPTH = 64;
/** Significant digits that a double holds exactly. */
const DIGITS = 15;

const TOKEN =
  /\s*(?:(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)|([a-z][a-z0-9]*)|([-+*/%^(),]))/iy;

const CONSTANTS: ReadonlyMap<string, number> = new Map([
  ['pi', Math.PI],
  ['e', Math.E],
]);

/** Functions by name; `any` means one argument or more. */
const FUNCTIONS: ReadonlyMap<
  string,
  { readonly takes: 1 | 'any'; run(...args: number[]): number }
> = new Map([
  ['abs', { takes: 1, run: Math.abs }],
  ['ceil', { takes: 1, run: Math.ceil }],
  ['exp', { takes: 1, run: Math.exp }],
  ['floor', { takes: 1, run: Math.floor }],
  ['ln', { takes: 1, run: Math.log }],
  ['log10', { takes: 1, run: Math.log10 }],
  ['max', { takes: 'any', run: Math.max }],
  ['min', { takes: 'any', run: Math.min }],
  ['round', { takes: 1, run: Math.round }],
  ['sqrt', { takes: 1, run: Math.sqrt }],
]);

/**
 * The value of an arithmetic expression. Precedence, highest first: `^` (right-associative), signs, `* / %`, `+ -`.
 * @throws ToolFailure for a syntax error, an expression that is too long or too deep, a value that is not finite, or an
 *   integer of magnitude 2^53 or more
 */
export function evaluate(text: string): number {
  if (text.length > MAX_LENGTH) {
    throw new ToolFailure(`expression is longer than ${MAX_LENGTH} characters.`);
  }
  const value = new Parser(tokens(text)).parse();
  if (!Number.isFinite(value)) {
    throw new ToolFailure(
      'expression has no finite value: it divides by zero, or is out of range.',
    );
  }
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new ToolFailure(
      'The magnitude of the value is 2^53 or more; such integers cannot be represented exactly.',
    );
  }
  // `+ 0` turns -0 into 0, as JSON.stringify does.
  return (Number.isInteger(value) ? value : Number(value.toPrecision(DIGITS))) + 0;
}

type Token = string | number;

function tokens(text: string): readonly Token[] {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  const source = text.trimEnd();
  while (TOKEN.lastIndex < source.length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(source);
    if (match === null)
      throw new ToolFailure(`expression cannot be read from character ${at + 1}.`);
    const [, number, name, sign] = match;
    found.push(number === undefined ? (name ?? sign ?? '').toLowerCase() : Number(number));
  }
  return found;
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  parse(): number {
    const value = this.#sum();
    if (this.#at < this.#tokens.length) throw this.#unexpected();
    return value;
  }

  #sum(): number {
    let value = this.#product();
    for (;;) {
      if (this.#take('+')) value += this.#product();
      else if (this.#take('-')) value -= this.#product();
      else return value;
    }
  }

  #product(): number {
    let value = this.#signed();
    for (;;) {
      if (this.#take('*')) value *= this.#signed();
      else if (this.#take('/')) value /= this.#signed();
      else if (this.#take('%')) value %= this.#signed();
      else return value;
    }
  }

  #signed(): number {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) {
      throw new ToolFailure(`expression is nested deeper than ${MAX_DEPTH}.`);
    }
    const value = this.#take('-')
      ? -this.#signed()
      : this.#take('+')
        ? this.#signed()
        : this.#power();
    this.#depth -= 1;
    return value;
  }

  #power(): number {
    const base = this.#single();
    return this.#take('^') ? base ** this.#signed() : base;
  }

  #single(): number {
    const token = this.#tokens[this.#at];
    if (typeof token === 'number') {
      this.#at += 1;
      return token;
    }
    if (this.#take('(')) return this.#closed(this.#sum());
    const constant = CONSTANTS.get(token ?? '');
    if (constant !== undefined) {
      this.#at += 1;
      return constant;
    }
    return this.#call();
  }

  #call(): number {
    const name = this.#tokens[this.#at];
    const known = typeof name === 'string' ? FUNCTIONS.get(name) : undefined;
    if (known === undefined) throw this.#unexpected();
    this.#at += 1;
    if (!this.#take('(')) throw this.#unexpected();
    const args = [this.#sum()];
    while (this.#take(',')) args.push(this.#sum());
    if (known.takes === 1 && args.length > 1) {
      throw new ToolFailure(`${name} takes one argument, not ${args.length}.`);
    }
    return this.#closed(known.run(...args));
  }

  #closed(value: number): number {
    if (this.#take(')')) return value;
    throw this.#unexpected();
  }

  #take(token: string): boolean {
    const is = this.#tokens[this.#at] === token;
    if (is) this.#at += 1;
    return is;
  }

  #unexpected(): ToolFailure {
    const token = this.#tokens[this.#at];
    return new ToolFailure(
      token === undefined ? 'expression ends too early.' : `expression has an unexpected ${token}.`,
    );
  }
}
