/** Formats runs, actions and approvals as text, with the same wording in the CLI and the console (PE-2). */
export { costOf, eventLines, type ShownLine, shortAction } from './event-lines.ts';
export { printable } from './printable.ts';
export { actionJson, resultJson } from './result-json.ts';
export { createRunPrinter, type Voice } from './run-lines.ts';
export { wordOf } from './word-of.ts';
export { haltStateText, recordFactsText, scopeText, timeText, usdText, wordsOf } from './words.ts';
