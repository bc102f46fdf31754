/** Runs, actions and approvals as text, in the same words on every screen (PE-2). */
export { printable } from './printable.ts';
export { actionJson, resultJson } from './result-json.ts';
export { createRunShow, shortAction, type Voice } from './run-lines.ts';
export { wordOf } from './word-of.ts';
