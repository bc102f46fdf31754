import { pathToFileURL } from 'node:url';
import { ConfigError } from '@writ/config';
import { type ToolContext, ToolFailure, type ToolFunction, type Tools } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { ToolAnswer, ToolInvocation, ToolSource } from './source.ts';

/** What {@link openLocalSource} needs. */
export interface LocalSourceOptions {
  readonly name: string;
  /** Absolute path of the module. */
  readonly module: string;
  /** Tools that it must have. */
  readonly tools: readonly string[];
  /** Where it is declared, for messages. */
  readonly place: string;
  readonly context: ToolContext;
  readonly log: Logger;
}

/** Longest sentence of a tool that is handed on, in characters. */
const MAX_MESSAGE = 1_000;

/**
 * Opens a TypeScript module as a source of tools (TG-6): imports it and calls its `createTools`.
 * @throws ConfigError naming the module when it cannot be loaded or lacks a declared tool
 */
export async function openLocalSource(options: LocalSourceOptions): Promise<ToolSource> {
  const tools = await loadTools(options);
  const missing = options.tools.filter((name) => functionOf(tools, name) === undefined);
  if (missing.length > 0) {
    await dispose(tools);
    throw unusable(options, `has no function for ${missing.join(', ')}`);
  }
  return {
    invoke: (invocation) => invoke(options, tools, invocation),
    close: () => dispose(tools),
  };
}

async function loadTools(options: LocalSourceOptions): Promise<Tools> {
  let module: { readonly createTools?: unknown };
  try {
    module = (await import(pathToFileURL(options.module).href)) as typeof module;
  } catch (error) {
    throw unusable(options, `cannot be loaded: ${firstLine(error)}`, error);
  }
  const { createTools } = module;
  if (typeof createTools !== 'function') {
    throw unusable(options, 'exports no function createTools');
  }
  try {
    const tools: unknown = await createTools(options.context);
    if (typeof tools === 'object' && tools !== null) return tools as Tools;
  } catch (error) {
    throw unusable(options, `failed in createTools: ${firstLine(error)}`, error);
  }
  throw unusable(options, 'gave no tools in createTools');
}

async function invoke(
  { log, name: source, module }: LocalSourceOptions,
  tools: Tools,
  { tool, args, signal, idempotencyKey, tenant, runId, agentName, callId }: ToolInvocation,
): Promise<ToolAnswer> {
  const run = functionOf(tools, tool);
  if (run === undefined) return { kind: 'failed', message: `${tool} is not there any more.` };
  const call = { idempotencyKey, tenant, runId, agentName, callId, signal };
  let value: unknown;
  try {
    value = await run(args, call);
  } catch (error) {
    if (error instanceof ToolFailure) {
      return { kind: 'failed', message: error.message.slice(0, MAX_MESSAGE) };
    }
    if (signal.aborted) return { kind: 'lost', message: `${tool} was called off.` };
    log.warn(
      { source, module, tool, call_id: callId, error_type: kindOf(error) },
      'A tool failed with an error of its own.',
    );
    return { kind: 'failed', message: `${tool} failed.` };
  }
  return toAnswer(tool, value);
}

/** The value as JSON has it: what a caller in another language would get. */
function toAnswer(tool: string, value: unknown): ToolAnswer {
  const bad: ToolAnswer = {
    kind: 'bad_result',
    message: `${tool} gave back something that is no JSON object.`,
  };
  if (!isPlainObject(value)) return bad;
  try {
    const content = JSON.stringify(value);
    return { kind: 'output', output: { kind: 'json', content, value: JSON.parse(content) } };
  } catch {
    // A bigint or a cycle; the tool did its work, and its result cannot be told.
    return bad;
  }
}

function isPlainObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null;
  return isPlain && !('toJSON' in value && typeof value.toJSON === 'function');
}

function functionOf(tools: Tools, name: string): ToolFunction | undefined {
  const found: unknown = Object.hasOwn(tools, name) ? tools[name] : undefined;
  return typeof found === 'function' ? (found as ToolFunction) : undefined;
}

async function dispose(tools: Tools): Promise<void> {
  await tools[Symbol.asyncDispose]?.();
}

function unusable({ place, module, name }: LocalSourceOptions, what: string, cause?: unknown) {
  const problem = `${place}: the module ${module} of the source ${name} ${what}.`;
  return new ConfigError(module, [problem], { cause });
}

function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return (message.split('\n')[0] ?? '').replace(/\.$/, '');
}

function kindOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
