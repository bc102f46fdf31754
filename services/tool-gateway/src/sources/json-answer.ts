import { isJsonObject, isWritError, parseJsonStrict } from '@writ/kernel';
import type { ToolAnswer } from './source.ts';

/** Largest JSON result that is read, in bytes: what a gRPC message can carry. */
const MAX_RESULT_BYTES = 4 * 1024 * 1024;

/** The answer that a JSON text is: its object, or no result. */
export function toJsonAnswer(tool: string, content: string): ToolAnswer {
  try {
    const value = parseJsonStrict(content, { field: 'result', maxBytes: MAX_RESULT_BYTES });
    if (isJsonObject(value)) return { kind: 'output', output: { kind: 'json', content, value } };
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
  return badResult(tool);
}

/** The answer of a tool that gave back something else than a result. */
export function badResult(tool: string): ToolAnswer {
  return { kind: 'bad_result', message: `${tool} gave back something that is no JSON object.` };
}
