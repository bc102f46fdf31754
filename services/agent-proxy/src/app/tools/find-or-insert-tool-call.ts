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

/** A stored tool call. */
export type NumberedCall = ToolCallRow;

/** A tool call that an external agent requests. */
export interface ToolRequest {
  readonly tool: string;
  /** RFC 8785 form of the arguments: exactly these bytes are reviewed, signed and executed (TG-1). */
  readonly argumentsJson: string;
  /** The call id that the client chose; empty without one. */
  readonly ownId: string;
}

/**
 * Stores a call durably and returns its row. Until a client has received the result of the latest equal call, a further
 * equal call is a repeat: it attaches to the approval of the latest call, and nothing is executed twice (AP-4). Calls
 * are equal when they have the same tool and arguments, or the same call id from the client; a call with an id from the
 * client is a repeat even after the client has received the result. JSON-RPC ids are never used to identify a repeat,
 * because clients reuse them.
 */
export async function numberToolCall(
  { store, clock, deliveries }: Pick<ProxyContext, 'store' | 'clock' | 'deliveries'>,
  agent: AgentKey,
  request: ToolRequest,
): Promise<ToolCallRow> {
  const { tool, ownId } = request;
  const digest = digestOf(request);
  const idOf = (number: number) =>
    derivedId('call', agent.instance, 'tool', digest, String(number));
  await deliveries.settled(agent, digest);
  const take = async (trx: ProxyTransaction): Promise<ToolCallRow> => {
    const latest = await latestToolCall(trx, agent, digest);
    if (latest !== undefined && (!latest.delivered || ownId !== '')) return latest;
    const number = (latest?.number ?? 0) + 1;
    const key = { ...agent, callId: idOf(number) };
    return await insertToolCall(trx, key, { tool, digest, number, created_at: clock.now() });
  };
  return await store.transaction(take, { run: agent });
}

/** Returns the digest of a call, which is the same for equal calls. */
export function digestOf({ tool, argumentsJson, ownId }: ToolRequest): string {
  return sha256Hex(ownId === '' ? `${tool}\n${argumentsJson}` : `id:${ownId}`);
}

/** Records that a client has received the result, so that an equal call without a client id is a new one. */
export async function markToolDelivered(
  { store }: Pick<ProxyContext, 'store'>,
  row: ToolCallRow,
): Promise<void> {
  const call = toolCallKeyOf(row);
  await store.transaction((trx) => saveToolCall(trx, call, { delivered: true }), { run: call });
}
