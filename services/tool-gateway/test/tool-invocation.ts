import type { ToolInvocation } from '../src/sources/source.ts';

/** Returns an invocation of `tool` with empty arguments, overridden by `changes`. */
export function toolInvocation(
  tool: string,
  changes: Partial<ToolInvocation> = {},
): ToolInvocation {
  return {
    tool,
    argumentsJson: '{}',
    args: {},
    idempotencyKey: 'idem_1',
    tenant: 'acme',
    runId: 'run_1',
    agentName: 'payer',
    callId: 'op-1',
    deadline: new Date(),
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    ...changes,
  };
}
