import type { Logger } from '@writ/telemetry';
import { runFunction } from '../run-function.ts';
import type { ToolSource } from '../source.ts';
import type { BuiltinParts, BuiltinTool } from './builtin-tool.ts';
import { calculator } from './calculator.ts';
import { httpFetch } from './http-fetch.ts';
import { note } from './note.ts';
import { now } from './now.ts';

/** Every built-in tool by name. */
export const BUILTIN_TOOLS: Readonly<Record<string, BuiltinTool>> = {
  calculator,
  http_fetch: httpFetch,
  note,
  now,
};

/** Options of {@link openBuiltinSource}. */
export interface BuiltinSourceOptions extends BuiltinParts {
  readonly name: string;
  readonly log: Logger;
}

/** Opens the built-in tools as a source (TG-6). */
export function openBuiltinSource(options: BuiltinSourceOptions): ToolSource {
  const tools = Object.fromEntries(
    Object.entries(BUILTIN_TOOLS).map(([name, tool]) => [name, tool.create(options)]),
  );
  return {
    invoke: (invocation) => runFunction(options, tools, invocation),
    close: async () => undefined,
  };
}
