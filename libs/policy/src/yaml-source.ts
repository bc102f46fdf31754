import type { JsonObject } from '@writ/kernel';
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
} from 'yaml';
import { PolicyError, type PolicyProblem } from './errors.ts';
import type { Spot } from './spot.ts';
import { characterAt } from './yaml-position.ts';

/** What a mapping may hold: any keys when `keys` is left out. */
export interface Shape {
  readonly keys?: readonly string[];
  readonly required?: readonly string[];
}

/**
 * One YAML text with the positions of everything in it. The readers return undefined for what has
 * the wrong form and remember the problem, so that one load names every mistake.
 */
export class YamlSource {
  readonly root: Spot;
  readonly warnings: PolicyProblem[] = [];
  readonly #file: string;
  readonly #text: string;
  readonly #document: Document;
  readonly #lines = new LineCounter();
  readonly #problems: PolicyProblem[] = [];
  #hasAlias = false;

  constructor(text: string, file: string) {
    this.#file = file;
    this.#text = text;
    const document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false });
    this.#document = document;
    this.root = { path: '', node: document.contents, offset: 0 };
    visit(document, {
      Alias: (_, alias) => {
        this.#hasAlias = true;
        this.#refuseAt(alias.range?.[0] ?? 0, 'aliases are not read here; write the value again.');
      },
    });
    for (const error of [...document.errors, ...document.warnings]) {
      this.#refuseAt(error.pos[0], error.message);
    }
  }

  /** Remembers a problem at a spot, or at a character of the text that the spot's scalar holds. */
  refuse(spot: Spot, message: string, character = 0): void {
    this.#refuseAt(characterAt(this.#text, spot, character), message);
  }

  /** Remembers something that is probably a mistake but does not refuse the document. */
  warn(spot: Spot, message: string): void {
    this.warnings.push(this.#problem(spot.offset, message));
  }

  /** Line, counted from 1, of a spot. */
  lineOf(spot: Spot): number {
    return this.#lines.linePos(spot.offset).line;
  }

  /** @throws PolicyError when a problem was found */
  assertSound(): void {
    const problems = this.#problems.toSorted(
      (left, right) => left.line - right.line || left.column - right.column,
    );
    const [first, ...rest] = problems;
    if (first !== undefined) throw new PolicyError([first, ...rest]);
  }

  /** The members of a mapping by key. */
  map(spot: Spot, shape: Shape = {}): ReadonlyMap<string, Spot> | undefined {
    if (!isMap(spot.node)) return this.#wrong(spot, 'a mapping');
    const members = new Map<string, Spot>();
    for (const { key, value } of spot.node.items) {
      const keySpot = spotOf(key, spot.path, spot.offset);
      const name = isScalar(key) ? String(key.value) : '';
      const path = spot.path === '' ? name : `${spot.path}.${name}`;
      if (shape.keys !== undefined && !shape.keys.includes(name)) {
        this.refuse(keySpot, `unknown key ${path}; expected ${oneOf(shape.keys)}.`);
        continue;
      }
      members.set(name, spotOf(value, path, keySpot.offset));
    }
    for (const name of shape.required ?? []) {
      if (members.has(name)) continue;
      this.refuse(spot, `${spot.path || 'the document'} must have the key ${name}.`);
    }
    return members;
  }

  /** The members of a list. */
  list(spot: Spot): readonly Spot[] | undefined {
    if (!isSeq(spot.node)) return this.#wrong(spot, 'a list');
    return spot.node.items.map((item, index) =>
      spotOf(item, `${spot.path}[${index}]`, spot.offset),
    );
  }

  /** Text that is not empty, and fits `pattern` if there is one. */
  text(spot: Spot, pattern?: RegExp): string | undefined {
    const value = this.#scalar(spot);
    if (typeof value !== 'string' || value.trim() === '') return this.#wrong(spot, 'a text');
    if (pattern === undefined || pattern.test(value)) return value;
    return this.#wrong(spot, `a name that fits ${pattern.source}`);
  }

  /** One of the words given. */
  word<T extends string>(spot: Spot, words: readonly T[]): T | undefined {
    const value = this.#scalar(spot);
    return words.find((word) => word === value) ?? this.#wrong(spot, `one of ${oneOf(words)}`);
  }

  /** A finite number. */
  number(spot: Spot): number | undefined {
    const value = this.#scalar(spot);
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    return this.#wrong(spot, 'a number');
  }

  /** A whole number between two bounds, which belong to it. */
  integer(spot: Spot, least: number, most: number): number | undefined {
    const value = this.#scalar(spot);
    if (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most) {
      return Number(value);
    }
    return this.#wrong(spot, `a whole number from ${least} to ${most}`);
  }

  /** A mapping as the JSON object that it spells. */
  json(spot: Spot): JsonObject | undefined {
    if (!isMap(spot.node)) return this.#wrong(spot, 'a mapping');
    // An alias may point nowhere or into itself; it was refused already.
    if (this.#hasAlias) return undefined;
    return JSON.parse(JSON.stringify(spot.node.toJS(this.#document)));
  }

  /** Text, number, true or false, as written. */
  literal(spot: Spot): string | number | boolean | undefined {
    const value = this.#scalar(spot);
    if (typeof value === 'string' || typeof value === 'boolean') return value;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    return this.#wrong(spot, 'a text, a number, true or false');
  }

  #scalar(spot: Spot): unknown {
    return isScalar(spot.node) ? spot.node.value : undefined;
  }

  #wrong(spot: Spot, expected: string): undefined {
    this.refuse(spot, `${spot.path || 'the document'} must be ${expected}, not ${found(spot)}.`);
  }

  #refuseAt(offset: number, message: string): void {
    this.#problems.push(this.#problem(offset, message));
  }

  #problem(offset: number, message: string): PolicyProblem {
    const { line, col } = this.#lines.linePos(offset);
    // LineCounter answers line 0 for a text without any line.
    return { file: this.#file, line: Math.max(line, 1), column: Math.max(col, 1), message };
  }
}

/** `a, b or c`. */
export function oneOf(words: readonly string[]): string {
  if (words.length < 2) return words.join('');
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function spotOf(node: unknown, path: string, fallback: number): Spot {
  if (!isScalar(node) && !isMap(node) && !isSeq(node) && !isAlias(node)) {
    return { path, node: null, offset: fallback };
  }
  return { path, node, offset: node.range?.[0] ?? fallback };
}

function found(spot: Spot): string {
  if (isMap(spot.node)) return 'a mapping';
  if (isSeq(spot.node)) return 'a list';
  if (isAlias(spot.node)) return 'an alias';
  if (!isScalar(spot.node)) return 'left empty';
  const { value } = spot.node;
  if (value === null || value === '') return 'left empty';
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 60));
  return String(value);
}
