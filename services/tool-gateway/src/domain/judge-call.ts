import type { JsonObject } from '@writ/kernel';
import { argumentProblems, type ParsedArguments } from './call-arguments.ts';
import { type Counted, type Counters, calls, findLoop, type Repetition } from './find-loop.ts';
import type { Registry } from './registry.ts';
import type { Tool } from './tool.ts';
import type { VerifiedWrit } from './verified-writ.ts';

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

/**
 * Checks a call with a valid writ, before freezes are checked, in the order of TG-2: the run's limit, the allowlists,
 * the registry, the schema, the tool's limit, repeats. Returns the first failure.
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
  const bad = argumentProblems(tool, parsed);
  if (bad !== undefined || 'problem' in parsed) return refuse(`tool_bad_args:${name}`, bad ?? '');
  const limits = writ.noDefaultLimits ? tool.explicitLimits : tool;
  const loop = findLoop({ name, limits }, parsed.hash, counters);
  if (loop !== undefined) return { kind: 'refuse', ...loop };
  return { kind: 'execute', tool, args: parsed.args, counted: { ofTool: true, ofSignature: true } };
}

function refuse(stopReason: string, message: string): CheckResult & { readonly kind: 'refuse' } {
  return { kind: 'refuse', stopReason, message, counted: { ofTool: false, ofSignature: false } };
}
