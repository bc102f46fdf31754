import type { EgressAllowance } from '@writ/service';
import type { Logger } from '@writ/telemetry';
import { runFunction } from '../run-function.ts';
import type { ToolSource } from '../source.ts';
import { createHttpFetch } from './http-fetch.ts';

/** Options of {@link openBuiltinSource}. */
export interface BuiltinSourceOptions {
  readonly name: string;
  readonly egress: EgressAllowance;
  readonly log: Logger;
}

/** Opens the built-in tool `http_fetch` as a source (TG-6). */
export function openBuiltinSource(options: BuiltinSourceOptions): ToolSource {
  const tools = { http_fetch: createHttpFetch(options.egress) };
  return {
    invoke: (invocation) => runFunction(options, tools, invocation),
    close: async () => undefined,
  };
}
