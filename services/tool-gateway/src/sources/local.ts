import { pathToFileURL } from 'node:url';
import { ConfigError, loadFailure } from '@writ/config';
import type { ToolContext, Tools } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { functionOf, runFunction } from './run-function.ts';
import type { ToolSource } from './source.ts';

/** Options of {@link openLocalSource}. */
export interface LocalSourceOptions {
  readonly name: string;
  /** Absolute path of the module. */
  readonly module: string;
  /** Names of the tools that `createTools` of the module must return. */
  readonly tools: readonly string[];
  /** `file:line:column` of the declaration, for messages. */
  readonly place: string;
  readonly context: ToolContext;
  readonly log: Logger;
}

type Module = Pick<LocalSourceOptions, 'place' | 'module' | 'name'>;

/**
 * Imports a TypeScript module and opens it as a source through its `createTools` (TG-6).
 * @throws ConfigError naming the module when it cannot be loaded or lacks a declared tool
 */
export async function openLocalSource(options: LocalSourceOptions): Promise<ToolSource> {
  const tools = await loadTools(options);
  const lacks = (names: readonly string[]) => missingFunctions(tools, names);
  const missing = lacks(options.tools);
  if (missing.length > 0) {
    await dispose(tools);
    throw unusable(options, `has no function for ${missing.join(', ')}`);
  }
  return {
    lacks,
    invoke: (invocation) => runFunction(options, tools, invocation),
    close: () => dispose(tools),
  };
}

/** The names without a function. */
export function missingFunctions(tools: Tools, names: readonly string[]): string[] {
  return names.filter((name) => functionOf(tools, name) === undefined);
}

/** @throws ConfigError naming the module when it cannot be loaded */
export async function loadTools(
  options: Omit<LocalSourceOptions, 'tools' | 'log'>,
): Promise<Tools> {
  let module: { readonly createTools?: unknown };
  try {
    module = (await import(pathToFileURL(options.module).href)) as typeof module;
  } catch (error) {
    throw unusable(options, `cannot be loaded: ${loadFailure(options.module, error)}`, error);
  }
  const { createTools } = module;
  if (typeof createTools !== 'function') {
    throw unusable(options, 'does not export a function createTools');
  }
  try {
    const tools: unknown = await createTools(options.context);
    if (typeof tools === 'object' && tools !== null) return tools as Tools;
  } catch (error) {
    throw unusable(options, `failed in createTools: ${firstLine(error)}`, error);
  }
  throw unusable(options, 'did not return tools from createTools');
}

async function dispose(tools: Tools): Promise<void> {
  await tools[Symbol.asyncDispose]?.();
}

function unusable({ place, module, name }: Module, what: string, cause?: unknown) {
  const problem = `${place}: the module ${module} of the source ${name} ${what}.`;
  return new ConfigError(module, [problem], { cause });
}

function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return (message.split('\n')[0] ?? '').replace(/\.$/, '');
}
