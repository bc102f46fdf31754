import {
  argsHash,
  checkArguments,
  isJsonObject,
  isWritError,
  type JsonObject,
  parseJsonStrict,
} from '@writ/kernel';
import type { Registry } from './registry.ts';
import type { CallLimits, Tool } from './tool.ts';
import type { VerifiedWrit } from './verified-writ.ts';

/** Parsed arguments, or the reason why they cannot be parsed. */
export type ParsedArguments =
  | { readonly args: JsonObject; readonly hash: string }
  | { readonly problem: string };

/** Earlier calls of one kind. */
export interface Tally {
  readonly calls: number;
  /** The last executed call; empty when there is none. */
  readonly lastCallId: string;
}

/** Earlier calls. */
export interface Counters {
  /** By all agents of the run. */
  readonly ofRun: number;
  /** Of this tool, by this agent. */
  readonly ofTool: Tally;
  /** Of this tool with these arguments, by this agent. */
  readonly ofSignature: Tally;
}

/** A repetition by an agent, reported so that its model can change its approach (TG-2). */
export interface Repetition {
  readonly tool: string;
  /** Empty when calls with any arguments count. */
  readonly argsHash: string;
  /** The last executed call; empty when there is none. */
  readonly earlierCallId: string;
  /** Number of earlier calls. */
  readonly calls: number;
  readonly limit: number;
}

/** The counters that a call increments, also when it is refused. */
export interface Counted {
  readonly ofTool: boolean;
  readonly ofSignature: boolean;
}

/** Result of the checks (TG-2). Every call counts for its run. */
export type CheckResult =
  | {
      readonly kind: 'execute';
      readonly tool: Tool;
      readonly args: JsonObject;
      readonly counted: Counted;
    }
  | {
      readonly kind: 'refuse';
      readonly stopReason: string;
      readonly message: string;
      readonly counted: Counted;
      /** Only for `loop_detected:…`. */
      readonly repetition?: Repetition;
    };

/** Largest number of problems in one message, and characters of each. */
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
 * The checks between a valid writ and the freeze, in the order of TG-2: the run's limit, the allowlists, the
 * registry, the schema, the tool's limit, repeats. The first check that fails decides.
 */
export function judgeCall(
  writ: VerifiedWrit,
  registry: Registry,
  counters: Counters,
  parsed: ParsedArguments,
): CheckResult {
  const { tool: name, maxToolCalls } = writ;
  if (maxToolCalls !== undefined && counters.ofRun >= maxToolCalls) {
    return refuse(
      'max_tool_calls',
      `The run has made ${calls(counters.ofRun)}; the limit is ${maxToolCalls}.`,
    );
  }
  if (!writ.allowedTools.includes(name) || !registry.allows(writ, name)) {
    return refuse(`tool_denied:${name}`, `Agent ${writ.agentName} may not call ${name}.`);
  }
  const tool = registry.tools.get(name);
  if (tool === undefined) {
    return refuse(`tool_missing:${name}`, `Tool ${name} does not exist at this gateway.`);
  }
  if (tool.digest !== writ.definitionDigest) {
    return refuse(
      `tool_changed:${name}`,
      `The definition of ${name} changed after the review. Propose a new call.`,
    );
  }
  const bad = badArguments(tool, parsed);
  if (bad !== undefined || 'problem' in parsed) return refuse(`tool_bad_args:${name}`, bad ?? '');
  const limits = writ.noDefaultLimits ? tool.setLimits : tool;
  const loop = findLoop({ name, limits }, parsed.hash, counters);
  if (loop !== undefined) return loop;
  return { kind: 'execute', tool, args: parsed.args, counted: { ofTool: true, ofSignature: true } };
}

function findLoop(
  { name, limits }: { readonly name: string; readonly limits: Partial<CallLimits> },
  hash: string,
  { ofTool, ofSignature }: Counters,
): CheckResult | undefined {
  const { maxCallsPerAgent = Infinity, maxRepeats = Infinity } = limits;
  if (ofTool.calls >= maxCallsPerAgent) {
    const repetition = repeat(name, '', ofTool, maxCallsPerAgent);
    const message = `This agent has made ${calls(ofTool.calls)} of ${name}${last(ofTool)}; the limit is ${maxCallsPerAgent} (max_calls_per_agent). Use the earlier results, or continue without ${name}.`;
    return { ...refuse('loop_detected:per_tool_limit', message), repetition };
  }
  if (ofSignature.calls >= maxRepeats) {
    const repetition = repeat(name, hash, ofSignature, maxRepeats);
    const message = `This agent has made ${calls(ofSignature.calls)} of ${name} with these same arguments (args_hash ${hash})${last(ofSignature)}; the limit is ${maxRepeats} (max_repeats). Use the earlier result, or other arguments.`;
    // The call passed the tool's limit and counts for it (TG-2).
    const counted = { ofTool: true, ofSignature: false };
    return { ...refuse('loop_detected:signature_repeat', message, counted), repetition };
  }
  return undefined;
}

function repeat(tool: string, argsHash: string, tally: Tally, limit: number): Repetition {
  return { tool, argsHash, earlierCallId: tally.lastCallId, calls: tally.calls, limit };
}

function last({ lastCallId }: Tally): string {
  return lastCallId === '' ? '' : `, the last one as ${lastCallId}`;
}

function badArguments(tool: Tool, parsed: ParsedArguments): string | undefined {
  if ('problem' in parsed) return parsed.problem;
  const { problems } = checkArguments(tool.contract, parsed.args, { phase: 'executed' });
  if (problems.length === 0) return undefined;
  const named = problems.slice(0, MAX_NAMED).map(({ message }) => message.slice(0, MAX_PROBLEM));
  const more = problems.length - named.length;
  return [...named, ...(more > 0 ? [`${more} more problems.`] : [])].join(' ');
}

function refuse(
  stopReason: string,
  message: string,
  counted: Counted = { ofTool: false, ofSignature: false },
): CheckResult & { readonly kind: 'refuse' } {
  return { kind: 'refuse', stopReason, message, counted };
}

function calls(count: number): string {
  return count === 1 ? '1 call' : `${count} calls`;
}
