import type { ToolDefinition } from '../src/domain/tool.ts';
import type { VerifiedWrit } from '../src/domain/verified-writ.ts';

/** A tool definition with defaults for tests. */
export function definition(over: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    name: 'pay',
    description: 'Pays a person.',
    inputSchema: {
      type: 'object',
      properties: { to: { type: 'string' }, cents: { type: 'integer' } },
      required: ['to'],
    },
    sideEffect: 'destructive',
    timeoutMs: 1_000,
    maxOutputBytes: 1_024,
    maxCallsPerAgent: 2,
    maxRepeats: 1,
    risk: 0.5,
    source: 'local',
    ...over,
  };
}

/** A writ with defaults for tests. */
export function writ(over: Partial<VerifiedWrit> = {}): VerifiedWrit {
  return {
    id: 'writ_1',
    tenant: 'acme',
    runId: 'run_1',
    agentName: 'payer',
    instance: 'payer-1',
    sessionId: 'session_1',
    callId: 'op-1',
    tool: 'pay',
    definitionDigest: '',
    argsSha256: '',
    maxToolCalls: undefined,
    allowedTools: ['pay'],
    resultFields: [],
    noDefaultLimits: false,
    ...over,
  };
}
