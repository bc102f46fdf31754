import { type AgentKey, derivedId, sha256Hex } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';
import {
  findToolCall,
  findToolCallUsedBy,
  insertToolCall,
  latestToolCall,
  saveToolCall,
  type ToolCallRow,
  toolCallKeyOf,
} from '../../store/tool-calls.ts';

/** A tool call that the client is about to execute itself. */
export interface ClientToolRequest {
  readonly tool: string;
  /** RFC 8785 form of the arguments; the text of the model when it is not JSON. */
  readonly argumentsJson: string;
  /** The id that the model gave the call. */
  readonly toolUseId: string;
  /** The model call whose answer contains it; empty when it is unknown. */
  readonly modelCallId: string;
  /** Digest of the definition that the client sent to the model; empty when it is unknown. */
  readonly definitionDigest: string;
}

/** Returns the id of a call, which is the same in the answer of the model and in a hook. */
export function clientToolCallId({ instance }: AgentKey, toolUseId: string): string {
  return derivedId('call', instance, 'client_tool', toolUseId);
}

/** Returns the digest of a call; calls with the same tool and arguments have the same digest. */
export function clientToolDigest({
  tool,
  argumentsJson,
}: Pick<ClientToolRequest, 'tool' | 'argumentsJson'>): string {
  return sha256Hex(`client_tool\n${tool}\n${argumentsJson}`);
}

/**
 * Stores a call durably and returns its row. Its id is derived from the id that the model gave it, so that a retry
 * finds its decision. If the approval of a call is still pending when the wait for it ends, the answer reports this to
 * the client, and the model may repeat the call with another id. The repeated call has the same tool and arguments, and
 * attaches to the same approval, unless another call has used that approval (AP-4, AP-5).
 * @param apart ids of the calls in the same answer; the call does not attach to the approvals of these calls
 */
export async function numberClientTool(
  { store, clock }: Pick<ProxyContext, 'store' | 'clock'>,
  agent: AgentKey,
  request: ClientToolRequest,
  apart: ReadonlySet<string> = new Set(),
): Promise<ToolCallRow> {
  const work = async (trx: ProxyTransaction): Promise<ToolCallRow> => {
    const known = await knownClientTool(trx, agent, request);
    if (known !== undefined) return known;
    const latest = await latestToolCall(trx, agent, clientToolDigest(request));
    const mayAttach = latest !== undefined && !latest.delivered && !apart.has(latest.call_id);
    if (mayAttach && latest.approval_id !== null) return latest;
    return await storeClientTool(trx, agent, request, clock.now());
  };
  return await store.transaction(work, { run: agent });
}

/**
 * Returns the row of a call. If the call has no row but has used the approval of an equal call, returns the row of the
 * equal call; otherwise returns undefined.
 */
export async function knownClientTool(
  trx: ProxyTransaction,
  agent: AgentKey,
  { toolUseId }: ClientToolRequest,
): Promise<ToolCallRow | undefined> {
  return (
    (await findToolCall(trx, { ...agent, callId: clientToolCallId(agent, toolUseId) })) ??
    (await findToolCallUsedBy(trx, agent, sha256Hex(toolUseId)))
  );
}

/** Inserts a row for a call. */
export async function storeClientTool(
  trx: ProxyTransaction,
  agent: AgentKey,
  request: ClientToolRequest,
  at: Date,
): Promise<ToolCallRow> {
  const digest = clientToolDigest(request);
  const { number = 0 } = (await latestToolCall(trx, agent, digest)) ?? {};
  const callId = clientToolCallId(agent, request.toolUseId);
  const call = { tool: request.tool, digest, number: number + 1, created_at: at };
  return await insertToolCall(trx, { ...agent, callId }, call);
}

/**
 * Records durably which call of the model uses an approval. Returns false when another call of the model has used the
 * approval, or when the row does not exist. An approval permits one execution.
 */
export async function useApproval(
  { store }: Pick<ProxyContext, 'store'>,
  row: ToolCallRow,
  toolUseId: string,
): Promise<boolean> {
  const key = toolCallKeyOf(row);
  const user = sha256Hex(toolUseId);
  const work = async (trx: ProxyTransaction): Promise<boolean> => {
    const current = await findToolCall(trx, key);
    if (current === undefined) return false;
    if (current.delivered) return current.delivered_to === user;
    await saveToolCall(trx, key, { delivered: true, delivered_to: user });
    return true;
  };
  return await store.transaction(work, { run: key });
}
