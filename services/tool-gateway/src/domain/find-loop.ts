import type { CallLimits } from './tool.ts';

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
  /** Empty when the limit applies to calls with any arguments. */
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

/** A call that repeats earlier ones too often. */
export interface Loop {
  readonly stopReason: string;
  readonly message: string;
  readonly counted: Counted;
  readonly repetition: Repetition;
}

/** Returns the limit on repetitions that a call would exceed (TG-2); undefined when it exceeds none. */
export function findLoop(
  { name, limits }: { readonly name: string; readonly limits: Partial<CallLimits> },
  hash: string,
  { ofTool, ofSignature }: Counters,
): Loop | undefined {
  const { maxCallsPerAgent = Infinity, maxRepeats = Infinity } = limits;
  if (ofTool.calls >= maxCallsPerAgent) {
    const repetition = repeat(name, '', ofTool, maxCallsPerAgent);
    const message = `This agent has made ${calls(ofTool.calls)} of ${name}${last(ofTool)}; the limit is ${maxCallsPerAgent} (max_calls_per_agent). Use the earlier results, or continue without ${name}.`;
    const counted = { ofTool: false, ofSignature: false };
    return { stopReason: 'loop_detected:per_tool_limit', message, counted, repetition };
  }
  if (ofSignature.calls >= maxRepeats) {
    const repetition = repeat(name, hash, ofSignature, maxRepeats);
    const message = `This agent has made ${calls(ofSignature.calls)} of ${name} with these same arguments (args_hash ${hash})${last(ofSignature)}; the limit is ${maxRepeats} (max_repeats). Use the earlier result, or other arguments.`;
    // The call passed the tool's limit and counts for it (TG-2).
    const counted = { ofTool: true, ofSignature: false };
    return { stopReason: 'loop_detected:signature_repeat', message, counted, repetition };
  }
  return undefined;
}

function repeat(tool: string, argsHash: string, tally: Tally, limit: number): Repetition {
  return { tool, argsHash, earlierCallId: tally.lastCallId, calls: tally.calls, limit };
}

function last({ lastCallId }: Tally): string {
  return lastCallId === '' ? '' : `, the last one as ${lastCallId}`;
}

/** Formats a number of calls for a message. */
export function calls(count: number): string {
  return count === 1 ? '1 call' : `${count} calls`;
}
