import {
  argsHash,
  checkArguments,
  isJsonObject,
  isWritError,
  type JsonObject,
  parseJsonStrict,
} from '@writ/kernel';
import type { Tool } from './tool.ts';

/** Parsed arguments, or the reason why they cannot be parsed. */
export type ParsedArguments =
  | { readonly args: JsonObject; readonly hash: string }
  | { readonly problem: string };

/** Maximum number of problems in one message, and maximum length of each problem in characters. */
const MAX_NAMED = 16;
const MAX_PROBLEM = 200;

/** Parses the exact argument bytes that were signed (TG-4). */
export function parseArguments(argumentsJson: string): ParsedArguments {
  try {
    const args = parseJsonStrict(argumentsJson, { field: 'arguments_json' });
    if (!isJsonObject(args)) return { problem: 'arguments_json must be a JSON object.' };
    return { args, hash: argsHash(args) };
  } catch (error) {
    if (isWritError(error)) return { problem: error.message };
    throw error;
  }
}

/**
 * Checks the arguments of a call against the schema of the tool (TG-2). Returns the problems as text; undefined when
 * there are none.
 */
export function argumentProblems(tool: Tool, parsed: ParsedArguments): string | undefined {
  if ('problem' in parsed) return parsed.problem;
  const { problems } = checkArguments(tool.contract, parsed.args, { phase: 'executed' });
  if (problems.length === 0) return undefined;
  const named = problems.slice(0, MAX_NAMED).map(({ message }) => message.slice(0, MAX_PROBLEM));
  const more = problems.length - named.length;
  return [...named, ...(more > 0 ? [`${more} more problems.`] : [])].join(' ');
}
