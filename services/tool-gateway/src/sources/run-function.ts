import { ToolFailure, type ToolFunction, type Tools } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import { badResult, MAX_MESSAGE_LENGTH, type ToolAnswer, type ToolInvocation } from './source.ts';

/** Runs a function of a source. Never rejects. */
export async function runFunction(
  { log, name: source }: { readonly log: Logger; readonly name: string },
  tools: Tools,
  { tool, args, signal, idempotencyKey, tenant, runId, agentName, callId }: ToolInvocation,
): Promise<ToolAnswer> {
  const run = functionOf(tools, tool);
  if (run === undefined) return { kind: 'failed', message: `${tool} no longer exists.` };
  const call = { idempotencyKey, tenant, runId, agentName, callId, signal };
  let value: unknown;
  try {
    value = await run(args, call);
  } catch (error) {
    if (error instanceof ToolFailure) {
      return { kind: 'failed', message: error.message.slice(0, MAX_MESSAGE_LENGTH) };
    }
    if (signal.aborted) return { kind: 'lost', message: `${tool} was cancelled.` };
    log.warn(
      { source, tool, call_id: callId, error_type: kindOf(error) },
      'tool threw an unexpected error',
    );
    return { kind: 'failed', message: `${tool} failed.` };
  }
  return toAnswer(tool, value);
}

/**
 * Returns the answer for a value that a function returned: the value converted to JSON and back, as a tool in another
 * process would return it, or `bad_result` when the value is not a plain object or has no JSON form.
 */
function toAnswer(tool: string, value: unknown): ToolAnswer {
  if (!isPlainObject(value)) return badResult(tool);
  try {
    const content = JSON.stringify(value);
    return { kind: 'output', output: { kind: 'json', content, value: JSON.parse(content) } };
  } catch {
    // The value contains a bigint or a cycle, so it has no JSON form.
    return badResult(tool);
  }
}

function isPlainObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null;
  return isPlain && !('toJSON' in value && typeof value.toJSON === 'function');
}

/** The function with this name; undefined when it does not exist. */
export function functionOf(tools: Tools, name: string): ToolFunction | undefined {
  const found: unknown = Object.hasOwn(tools, name) ? tools[name] : undefined;
  return typeof found === 'function' ? (found as ToolFunction) : undefined;
}

function kindOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
