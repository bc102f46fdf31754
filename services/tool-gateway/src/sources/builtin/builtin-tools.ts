import type { BuiltinTool } from './builtin-tool.ts';
import { calculator } from './calculator.ts';
import { httpFetch } from './http-fetch.ts';
import { note } from './note.ts';
import { now } from './now.ts';

/** Every tool that a source of the kind `builtin` may offer, by name. */
export const BUILTIN_TOOLS: Readonly<Record<string, BuiltinTool>> = {
  calculator,
  http_fetch: httpFetch,
  note,
  now,
};
