import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ResultKind, type ToolResult } from '@writ/contracts/writ/tool/v1/tool_pb';
import { type AgentKey, ByteCache, type Clock, DataLossError } from '@writ/kernel';
import { type CallOptions, createRpcClient, type RpcClientOptions } from '@writ/rpc';
import type { Action } from '../domain/calls/decision.ts';
import type { ToolInfo, ToolOutcome, ToolStatus } from '../domain/calls/tool-call.ts';

/** A tool call with its writ. */
interface WritCall {
  readonly agent: AgentKey;
  readonly callId: string;
  readonly action: Extract<Action, { kind: 'tool' }>;
  readonly writ: string;
  readonly step: number;
}

/** The agent that lists tools, and the names of the tools. */
interface WantedTools {
  readonly tenant: string;
  /** Name of the agent. */
  readonly agent: string;
  readonly names: readonly string[];
}

/** Client of the tool-gateway. */
export interface ToolGatewayPeer {
  /** Makes the tool-gateway reject calls of workers that held an earlier lease of the agent (RT-2). */
  admitEpoch(options: CallOptions): Promise<void>;
  /**
   * Lists the tools with these names that the agent's token permits; the list may be up to one second old.
   */
  listTools(wanted: WantedTools, options: CallOptions): Promise<readonly ToolInfo[]>;
  /** Executes an approved action; a repeated call returns the recorded outcome (TG-1). */
  callTool(call: WritCall, options: CallOptions): Promise<ToolOutcome>;
  close(): void;
}

/** Maximum number of names per request. */
const MAX_NAMES = 1_024;

/** Maximum memory of the cached tool lists, bytes. */
const MAX_LIST_BYTES = 16_000_000;

/** Time for which a cached tool list is used without a request to the tool-gateway, in milliseconds. */
const LIST_TTL_MS = 1_000;

interface KnownTools {
  readonly version: string;
  readonly tools: readonly ToolInfo[];
}

/** A cached list, and the time on the monotonic clock at which it was last known to be current, in milliseconds. */
interface CachedTools extends KnownTools {
  readonly confirmedAt: number;
}

/**
 * Creates a gRPC client of the tool-gateway. It caches one tool list for each agent and set of names. At most once a
 * second, it asks whether a list is current; the list is sent again only when the registry has changed.
 */
export function createToolGatewayPeer(options: RpcClientOptions, clock: Clock): ToolGatewayPeer {
  const client = createRpcClient(ToolGatewayService, options);
  const known = new ByteCache<CachedTools>({ name: 'tool_lists', maxBytes: MAX_LIST_BYTES });

  const readAll = async (
    names: readonly string[],
    knownVersion: string,
    call: CallOptions,
  ): Promise<KnownTools | undefined> => {
    const tools: ToolInfo[] = [];
    let pageToken = '';
    for (;;) {
      const page = await client.listTools(
        { names: names.slice(0, MAX_NAMES), knownVersion, pageToken },
        call,
      );
      if (page.unchanged) return undefined;
      for (const { name, description, inputSchemaJson } of page.tools) {
        tools.push({ name, description, inputSchemaJson });
      }
      pageToken = page.nextPageToken;
      if (pageToken === '') return { version: page.registryVersion, tools };
    }
  };

  return {
    async admitEpoch(call) {
      await client.listTools({ admitEpoch: true, pageSize: 1 }, call);
    },
    async listTools({ tenant, agent, names }, call) {
      const key = JSON.stringify([tenant, agent, names]);
      const before = known.get(key);
      const confirmedAt = clock.monotonicMs();
      if (before !== undefined && confirmedAt - before.confirmedAt < LIST_TTL_MS)
        return before.tools;
      const fresh = (await readAll(names, before?.version ?? '', call)) ?? before;
      if (fresh === undefined) return [];
      known.set(key, { version: fresh.version, tools: fresh.tools, confirmedAt });
      return fresh.tools;
    },
    async callTool({ agent, callId, action, writ, step }, call) {
      const { tenant, runId, instance } = agent;
      const answer = await client.callTool(
        {
          call: { tenant, runId, agentInstance: instance, callId },
          tool: action.tool,
          argumentsJson: action.argumentsJson,
          writ,
          step,
        },
        call,
      );
      const { stopReason, message, result, receipt } = answer;
      return {
        status: statusOf(answer.status),
        stopReason,
        message,
        contentKind: contentKindOf(result),
        ...(result !== undefined && { content: result.content }),
        receipt,
      };
    },
    close: () => client.close(),
  };
}

function statusOf(status: CallStatus): ToolStatus {
  switch (status) {
    case CallStatus.OK:
      return 'ok';
    case CallStatus.ERROR:
      return 'error';
    case CallStatus.REFUSED:
      return 'refused';
    case CallStatus.UNKNOWN:
      return 'unknown';
    case CallStatus.VOID:
      return 'void';
    default:
      throw new DataLossError(
        'INVALID_CALL_STATUS',
        'The response of tool-gateway has no known status.',
        {
          field: 'status',
        },
      );
  }
}

function contentKindOf(result: ToolResult | undefined): ToolOutcome['contentKind'] {
  switch (result?.kind) {
    case ResultKind.JSON:
      return 'json';
    case ResultKind.TEXT:
      return 'text';
    case ResultKind.IMAGE:
      return 'image';
    default:
      return 'none';
  }
}
