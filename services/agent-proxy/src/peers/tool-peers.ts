import type { MessageInitShape } from '@bufbuild/protobuf';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import type { ActionSchema } from '@writ/contracts/writ/review/v1/action_pb';
import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import type {
  CallToolResponse,
  ListToolsResponse,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { type AgentKey, DataLossError } from '@writ/kernel';
import { type CallOptions, createRpcClient, type RpcClientOptions } from '@writ/rpc';

/** A tool call that a client executes itself. */
export interface ProposedClientTool extends ProposedTool {
  /** The model call whose answer contains it; empty when it is unknown. */
  readonly modelCallId: string;
  /** Digest of the definition that the client sent to the model; empty when it is unknown. */
  readonly definitionDigest: string;
}

/** A proposed tool call, with the receipts and results of earlier calls that the supervisor does not have yet. */
export interface ProposedTool {
  readonly callId: string;
  readonly tool: string;
  readonly argumentsJson: string;
  /** Receipts of earlier calls, each a JWS. */
  readonly receipts: readonly string[];
  /** Their results. */
  readonly observations: readonly { readonly callId: string; readonly content: string }[];
}

/** An approved tool call with its writ. */
export interface OrderedTool {
  readonly agent: AgentKey;
  readonly callId: string;
  readonly tool: string;
  readonly argumentsJson: string;
  readonly writ: string;
  readonly step: number;
}

/**
 * The RPCs of supervisor and gateway for the tool calls of external agents. They throw the named errors of these
 * services.
 */
export interface ToolPeers {
  /** Requests a decision; a repeated call returns the current one (SV-1). */
  reviewTool(call: ProposedTool, options: CallOptions): Promise<Decision>;
  /** Requests a decision on a call that the client executes itself; a repeated call returns the current one (AP-5). */
  reviewClientTool(call: ProposedClientTool, options: CallOptions): Promise<Decision>;
  /** Returns the current decision, with a new writ. */
  getDecision(callId: string, options: CallOptions): Promise<Decision>;
  /** Withdraws a proposal that waits for a person; returns false when it was decided before (AP-4). */
  withdraw(callId: string, options: CallOptions): Promise<boolean>;
  /** Executes an approved call; a repeated one returns the record (TG-1). */
  callTool(call: OrderedTool, options: CallOptions): Promise<CallToolResponse>;
  /** Returns one page of the tools that the agent's token allows. */
  listTools(
    query: Pick<ListToolsResponse, 'nextPageToken'> & { readonly knownVersion: string },
    options: CallOptions,
  ): Promise<ListToolsResponse>;
  close(): void;
}

/** Creates the clients; each connects on its first call. */
export function createToolPeers(to: {
  readonly supervisor: RpcClientOptions;
  readonly gateway: RpcClientOptions;
}): ToolPeers {
  const reviews = createRpcClient(ReviewService, to.supervisor);
  const gateway = createRpcClient(ToolGatewayService, to.gateway);
  const review = async (
    { callId, receipts, observations }: ProposedTool,
    kind: NonNullable<MessageInitShape<typeof ActionSchema>['kind']>,
    options: CallOptions,
    modelCallId = '',
  ): Promise<Decision> => {
    const { decision } = await reviews.reviewAction(
      {
        callId,
        modelCallId,
        proposal: { case: 'action', value: { kind } },
        receipts: [...receipts],
        observations: observations.map((seen) => ({ ...seen })),
      },
      options,
    );
    return present(decision);
  };
  return {
    reviewTool(call, options) {
      const { tool, argumentsJson } = call;
      return review(call, { case: 'tool', value: { tool, argumentsJson } }, options);
    },
    reviewClientTool(call, options) {
      const { tool, argumentsJson, definitionDigest, modelCallId } = call;
      const value = { tool, argumentsJson, definitionDigest };
      return review(call, { case: 'clientTool', value }, options, modelCallId);
    },
    async getDecision(callId, options) {
      return present((await reviews.getDecision({ callId }, options)).decision);
    },
    async withdraw(callId, options) {
      return (await reviews.withdrawAction({ callId }, options)).withdrawn;
    },
    callTool: ({ agent, callId, ...order }, options) => {
      const { tenant, runId, instance: agentInstance } = agent;
      const call = { tenant, runId, agentInstance, callId };
      return gateway.callTool({ call, ...order }, options);
    },
    listTools: ({ nextPageToken: pageToken, knownVersion }, options) =>
      gateway.listTools({ pageToken, knownVersion }, options),
    close() {
      reviews.close();
      gateway.close();
    },
  };
}

/** Whether a person must find out what a call did (TG-5). */
export function isOutcomeUnknown({ status }: CallToolResponse): boolean {
  return status === CallStatus.UNKNOWN;
}

function present(decision: Decision | undefined): Decision {
  if (decision !== undefined) return decision;
  throw new DataLossError('INVALID_DECISION', 'The response of the supervisor has no decision.', {
    field: 'decision',
  });
}
