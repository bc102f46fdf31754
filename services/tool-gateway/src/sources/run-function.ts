import { ToolFailure, type ToolFunction, type Tools } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { ToolAnswer, ToolInvocation } from './source.ts';

/** Longest sentence of a tool that is handed on, in characters. */
const MAX_MESSAGE = 1_000;

/** Runs one of the functions that a source holds. Never rejects. */
export async function runFunction(
  { log, name: source }: { readonly log: Logger; readonly name: string },
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
      { source, tool, call_id: callId, error_type: kindOf(error) },
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

/** The function of this name; undefined where there is none. */
export function functionOf(tools: Tools, name: string): ToolFunction | undefined {
  const found: unknown = Object.hasOwn(tools, name) ? tools[name] : undefined;
  return typeof found === 'function' ? (found as ToolFunction) : undefined;
}

function kindOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
