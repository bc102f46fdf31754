import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { AgentCredentialsSchema } from '@writ/contracts/writ/supervision/v1/credentials_pb';
import {
  AgentWorkerService,
  type ApprovalSignalSchema,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { createRpcClient, type RpcClientOptions } from '@writ/rpc';
import { manifestFromJson } from '../domain/manifest/manifest-json.ts';
import { manifestMessage } from '../rpc/messages/manifest.ts';
import { agentRefOf, retentionMessage, supervisionMessage } from '../rpc/messages/supervision.ts';
import type { AgentKey, AgentRow } from '../store/agent/agents.ts';
import type { RunKey } from '../store/change/changes.ts';
import type { RunRow } from '../store/run/runs.ts';

/** Tokens for one agent, as a worker gets them. */
export type Credentials = MessageInitShape<typeof AgentCredentialsSchema>;

/** What an approval tells the agent that waits for it. */
export type ApprovalSignal = MessageInitShape<typeof ApprovalSignalSchema>;

/** A root agent to hand over. */
export interface RootDelivery {
  readonly requestId: string;
  readonly run: RunRow;
  readonly agent: AgentRow;
  readonly credentials: Credentials;
  readonly slotGrant: string;
}

/** A signal to an agent that waits. */
export interface AgentSignal extends AgentKey {
  readonly requestId: string;
  readonly name: string;
  readonly payloadJson?: string;
  readonly approval?: ApprovalSignal;
}

/** The runner of agents, as the supervisor needs it. Every call is idempotent and durable when it answers. */
export interface AgentWorkerPeer {
  /** Hands over a run's root with the caller's goal as its first message. */
  deliverRoot(delivery: RootDelivery): Promise<void>;
  /** Wakes an agent; returns whether it was news. */
  signal(signal: AgentSignal): Promise<boolean>;
  /** Ends every agent of a run. */
  cancelRun(requestId: string, run: RunKey, stopReason: string, retention: string): Promise<void>;
  close(): void;
}

/** Calls agent-worker over gRPC. */
export function createAgentWorkerPeer(options: RpcClientOptions): AgentWorkerPeer {
  const client = createRpcClient(AgentWorkerService, options);
  return {
    async deliverRoot({ requestId, run, agent, credentials, slotGrant }) {
      await client.deliver({
        requestId,
        tenant: run.tenant,
        agent: agentRefOf(agent),
        supervision: supervisionMessage(run, agent),
        manifest: manifestMessage(manifestFromJson(agent.manifest)),
        credentials,
        slotGrant,
        message: {
          messageId: requestId,
          text: run.goal,
          dataJson: run.data_json,
          correlationId: run.session_id,
        },
        ...(run.deadline_at && { deadline: timestampFromDate(run.deadline_at) }),
        traceparent: run.traceparent,
      });
    },
    async signal({ requestId, tenant, runId, instance, name, payloadJson = '', approval }) {
      const { accepted } = await client.signal(
        {
          requestId,
          tenant,
          runId,
          agentInstance: instance,
          name,
          payloadJson,
          ...(approval && { approval }),
        },
        { retry: true },
      );
      return accepted;
    },
    async cancelRun(requestId, { tenant, runId }, stopReason, retention) {
      await client.cancel({
        requestId,
        tenant,
        runId,
        stopReason,
        retention: retentionMessage(retention),
      });
    },
    close: () => client.close(),
  };
}
