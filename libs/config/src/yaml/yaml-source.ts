import { readFileSync } from 'node:fs';
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
} from 'yaml';
import { ConfigError } from '../config-error.ts';

/** Keys and indexes from the root of a document to a value. */
export type DataPath = readonly (string | number)[];

/** A file name, or text with the file name to use in messages. */
export type YamlInput = string | { readonly text: string; readonly file: string };

/** One parsed YAML document with the positions of its values. */
export interface YamlSource {
  readonly file: string;
  readonly value: unknown;
  /**
   * Returns `file:line:column` of the value at `path`, or of its key; of the nearest parent when
   * the path does not exist.
   */
  locate(path: DataPath, what?: 'key' | 'value'): string;
}

/**
 * Reads one YAML or JSON document.
 * @throws ConfigError when the file cannot be read or its aliases expand excessively; with line and column of the first
 *   tab used as indentation, otherwise of every syntax error, duplicate key, unresolved tag and second document
 */
export function readYaml(input: YamlInput): YamlSource {
  const { text, file } = typeof input === 'string' ? readText(input) : input;
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  // After a tab, the parser reports an error for each following line.
  const tab = document.errors.find(({ code }) => code === 'TAB_AS_INDENT');
  if (tab !== undefined) {
    throw new ConfigError(file, [
      `${place(tab.pos[0])}: Tabs are not allowed; indent with spaces.`,
    ]);
  }
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    throw new ConfigError(
      file,
      faults.map(({ pos, message }) => `${place(pos[0])}: ${sentence(message)}`),
    );
  }
  return {
    file,
    value: toValue(document, file),
    locate: (path, what = 'value') => place(offsetOf(document, path, what)),
  };
}

function readText(file: string): { text: string; file: string } {
  try {
    return { text: readFileSync(file, 'utf8'), file };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new ConfigError(file, [`${file} cannot be read (${code}).`], { cause: error });
  }
}

function toValue(document: Document.Parsed, file: string): unknown {
  try {
    return document.toJS() as unknown;
  } catch (error) {
    // The parser rejects documents whose aliases expand exponentially.
    const problem = error instanceof Error ? error.message : String(error);
    throw new ConfigError(file, [`${file}: ${sentence(problem)}`], { cause: error });
  }
}

function offsetOf(document: Document.Parsed, path: DataPath, what: 'key' | 'value'): number {
  let node: unknown = document.contents;
  let key: unknown;
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => keyText(item.key) === String(step));
      if (pair === undefined) break;
      key = pair.key;
      node = pair.value ?? pair.key;
    } else if (isSeq(node)) {
      const item: unknown = node.items[Number(step)];
      if (item === undefined) break;
      key = undefined;
      node = item;
    } else break;
  }
  return startOf(what === 'key' ? key : undefined) ?? startOf(node) ?? 0;
}

function keyText(key: unknown): string {
  return String(isScalar(key) ? key.value : key);
}

function startOf(node: unknown): number | undefined {
  const range = (node as Partial<Node> | null | undefined)?.range;
  return range?.[0];
}

function sentence(text: string): string {
  const line = text.split('\n')[0]?.trim() ?? '';
  return /[.!?]$/.test(line) ? line : `${line}.`;
}
