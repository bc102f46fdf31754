import { type AgentKey, derivedId, sha256Hex } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';
import {
  insertToolCall,
  latestToolCall,
  saveToolCall,
  type ToolCallRow,
  toolCallKeyOf,
} from '../../store/tool-calls.ts';

export type { ToolCallRow };

/** A tool call that an external agent requests. */
export interface ToolRequest {
  readonly tool: string;
  /**
   * RFC 8785 form of the arguments. The supervisor reviews these bytes; they are signed and executed unless policy or
   * an approver changes the arguments (TG-1).
   */
  readonly argumentsJson: string;
  /** The call id that the client chose; empty if it chose none. */
  readonly clientCallId: string;
}

/**
 * Returns the row of a call: stores a new call durably, or finds the call that the request repeats. Until a client has
 * received the result of the latest equal call, a further equal call is a repeat: it continues the latest call and its
 * approval, so that nothing is executed twice (AP-4). Calls with a call id from the client are equal if they have the
 * same id, and are repeats even after a client has received the result. Calls without one are equal if they have the
 * same tool and arguments. JSON-RPC ids never identify a repeat, because clients reuse them.
 */
export async function findOrInsertToolCall(
  { store, clock, deliveries }: Pick<ProxyContext, 'store' | 'clock' | 'deliveries'>,
  agent: AgentKey,
  request: ToolRequest,
): Promise<ToolCallRow> {
  const { tool, clientCallId } = request;
  const digest = digestOf(request);
  const idOf = (number: number) =>
    derivedId('call', agent.instance, 'tool', digest, String(number));
  await deliveries.waitUntilSent(agent, digest);
  const findOrInsert = async (trx: ProxyTransaction): Promise<ToolCallRow> => {
    const latest = await latestToolCall(trx, agent, digest);
    if (latest !== undefined && (!latest.delivered || clientCallId !== '')) return latest;
    const number = (latest?.number ?? 0) + 1;
    const key = { ...agent, callId: idOf(number) };
    return await insertToolCall(trx, key, { tool, digest, number, created_at: clock.now() });
  };
  return await store.transaction(findOrInsert, { run: agent });
}

/** Returns the digest of a call, which is the same for equal calls. */
export function digestOf({ tool, argumentsJson, clientCallId }: ToolRequest): string {
  return sha256Hex(clientCallId === '' ? `${tool}\n${argumentsJson}` : `id:${clientCallId}`);
}

/**
 * Records that a client has received the result, so that an equal call without a call id from the client is a new call.
 */
export async function markResultDelivered(
  { store }: Pick<ProxyContext, 'store'>,
  row: ToolCallRow,
): Promise<void> {
  const call = toolCallKeyOf(row);
  await store.transaction((trx) => saveToolCall(trx, call, { delivered: true }), { run: call });
}
