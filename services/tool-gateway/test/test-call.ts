import type { MessageInitShape } from '@bufbuild/protobuf';
import type { CallToolRequestSchema } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { type ClaimsInit, mintWrit, type Signer } from '@writ/identity';
import { sha256Hex } from '@writ/kernel';

/** A tool call of a test, with the differences between its writ and a matching writ. */
export interface TestCall {
  readonly tool?: string;
  readonly args?: unknown;
  readonly argumentsJson?: string;
  readonly callId?: string;
  readonly tenant?: string;
  readonly runId?: string;
  readonly agent?: string;
  /** Claims that replace those of a matching writ. */
  readonly writ?: Partial<ClaimsInit<'writ'>>;
  readonly ttlMs?: number;
}

/** A request of CallTool. */
export type CallRequest = MessageInitShape<typeof CallToolRequestSchema>;

const AGENT = { name: 'payer', instance: 'payer-1' };

/** Returns the key of a call, with defaults for tests. */
export function keyOf({ tenant = 'acme', runId = 'run_1', agent, callId = 'op-1' }: TestCall = {}) {
  return { tenant, runId, agentInstance: agent ?? AGENT.instance, callId };
}

/**
 * Creates a CallTool request whose writ matches it, except for the claims in `writ` of the call.
 * @param signer the key of the supervisor
 * @param digestOf returns the digest of the definition of a tool
 */
export async function requestOf(
  {
    tool = 'pay',
    args = { to: 'anna' },
    argumentsJson = JSON.stringify(args),
    writ = {},
    ttlMs = 60_000,
    ...call
  }: TestCall,
  signer: Signer,
  digestOf: (tool: string) => string,
): Promise<CallRequest> {
  const key = keyOf(call);
  const claims: ClaimsInit<'writ'> = {
    tenant: key.tenant,
    runId: key.runId,
    agent: { name: AGENT.name, instance: key.agentInstance },
    callId: key.callId,
    tool,
    definitionDigest: digestOf(tool),
    argsSha256: sha256Hex(argumentsJson),
    decisionId: 'decision_1',
    policyVersion: 'policy_1',
    executedFrom: 'original',
    allowedTools: [tool],
    sessionId: 'session_1',
  };
  const order = await mintWrit(signer, { ...claims, ...writ } as never, ttlMs);
  return { call: key, tool, argumentsJson, writ: order.token, step: 3 };
}
