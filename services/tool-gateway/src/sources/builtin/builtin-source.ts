import type { Logger } from '@writ/telemetry';
import { runFunction } from '../run-function.ts';
import type { ToolSource } from '../source.ts';
import type { BuiltinParts } from './builtin-tool.ts';
import { BUILTIN_TOOLS } from './builtin-tools.ts';

/** What {@link openBuiltinSource} needs. */
export interface BuiltinSourceOptions extends BuiltinParts {
  readonly name: string;
  readonly log: Logger;
}

/** Opens the tools that come with the gateway as a source (TG-6). */
export function openBuiltinSource(options: BuiltinSourceOptions): ToolSource {
  const tools = Object.fromEntries(
    Object.entries(BUILTIN_TOOLS).map(([name, tool]) => [name, tool.create(options)]),
  );
  return {
    invoke: (invocation) => runFunction(options, tools, invocation),
    close: async () => undefined,
  };
}
