import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The steps of docs/tutorial/own-agent.md. */
export interface Tutorial {
  /** Files to replace, in order. */
  readonly files: readonly { readonly file: string; readonly text: string }[];
  /** Blocks of shell commands, in order. */
  readonly commands: readonly string[];
}

const PAGE = join(resolve(import.meta.dirname, '../..'), 'docs/tutorial/own-agent.md');
const BLOCK = /^(?<before>[^\n]*)\n\n```(?<language>\w+)\n(?<text>[\s\S]*?)^```$/gm;

/**
 * Reads the code blocks of the tutorial. A block after a line that ends with "Replace `file`:" is the new text of this
 * file.
 */
export function readTutorial(): Tutorial {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(BLOCK)].map(({ groups }) => ({
    file: /Replace `(?<file>[^`]+)`:$/.exec(groups?.before ?? '')?.groups?.file,
    language: groups?.language,
    text: groups?.text ?? '',
  }));
  return {
    files: blocks.flatMap(({ file, text }) => (file === undefined ? [] : [{ file, text }])),
    commands: blocks.filter(({ language }) => language === 'sh').map(({ text }) => text),
  };
}
