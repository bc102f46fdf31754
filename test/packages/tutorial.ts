import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** What a reader of docs/tutorial/own-agent.md does. */
export interface Tutorial {
  /** Files to replace, in order. */
  readonly files: readonly { readonly file: string; readonly text: string }[];
  /** Blocks of shell commands, in order. */
  readonly commands: readonly string[];
}

const PAGE = join(resolve(import.meta.dirname, '../..'), 'docs/tutorial/own-agent.md');
const BLOCK = /^(?<before>[^\n]*)\n\n```(?<language>\w+)\n(?<text>[\s\S]*?)^```$/gm;

/** Reads the blocks of the tutorial: a sentence that ends in "Replace `file`:" says what a block is. */
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
