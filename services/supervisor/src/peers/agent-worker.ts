import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { AgentCredentialsSchema } from '@writ/contracts/writ/supervision/v1/credentials_pb';
import type { CarriedEvent } from '@writ/contracts/writ/timeline/v1/carried_event_pb';
import {
  AgentPresence,
  AgentWorkerService,
  type ApprovalSignalSchema,
  type ListLogEntriesRequest,
  type ListLogEntriesResponse,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import type { AgentKey, RunKey } from '@writ/kernel';
import { omitUndefined } from '@writ/kernel';
import { createRpcClient, type RpcClientOptions } from '@writ/rpc';
import { manifestFromJson } from '../domain/manifest/manifest-json.ts';
import type { AgentRow } from '../store/agent/agents.ts';
import { deadlineOf } from '../store/agent/deadline.ts';
import type { RunRow } from '../store/run/runs.ts';
import { manifestMessage } from '../wire/manifest.ts';
import { agentRefOf, retentionMessage, supervisionMessage } from '../wire/supervision.ts';

/** The tokens of one agent. */
export type Credentials = MessageInitShape<typeof AgentCredentialsSchema>;

/** The decision on an approval, for the agent that waits for it. */
export type ApprovalSignal = MessageInitShape<typeof ApprovalSignalSchema>;

/** An agent to deliver. */
export interface AgentDelivery {
  readonly requestId: string;
  readonly run: RunRow;
  readonly agent: AgentRow;
  readonly credentials: Credentials;
  /** Empty when the agent holds no slot. */
  readonly slotGrant: string;
  /** The task: the goal of the caller, or the task of the parent. */
  readonly message: {
    readonly text: string;
    readonly dataJson?: string;
    readonly correlationId: string;
    /** Instance of the parent that waits for the answer; omitted for the root. */
    readonly from?: string;
  };
}

/** A signal to an agent that has not ended: an approval, `halted`, `resumed`, or a signal of a client. */
export interface AgentSignal extends AgentKey {
  readonly requestId: string;
  /** Whether the agent is external. */
  readonly isExternal: boolean;
  readonly name: string;
  readonly payloadJson?: string;
  readonly approval?: ApprovalSignal;
  /** Subject of the client that sent it; omitted when no client did. */
  readonly sender?: string;
}

/** An agent, and whether agent-proxy hosts it. */
export interface HostedAgent extends AgentKey {
  readonly isExternal: boolean;
}

/** An order to end one agent. */
export interface AgentCancellation extends HostedAgent {
  readonly requestId: string;
  readonly stopReason: string;
  /** The last events about the agent that the worker sent and that are on the timeline, encoded. */
  readonly recordedEvents: readonly Uint8Array[];
}

/** An order to end every agent of a run. */
export interface RunCancellation extends RunKey {
  readonly requestId: string;
  readonly stopReason: string;
  readonly retention: string;
  /** Whether the root is an external agent. */
  readonly isExternal: boolean;
  /** Approved answer to publish to the root's output topic; empty for none. */
  readonly answer: string;
  /** The last events that the worker sent and that are on the timeline, encoded. */
  readonly recordedEvents: readonly Uint8Array[];
}

/**
 * Client of agent-worker, or of agent-proxy, which serves the same API for external agents. Calls are idempotent, and
 * durable when they return. The order engine repeats the calls of orders; the client retries only calls for which a
 * caller waits.
 */
export interface AgentWorkerPeer {
  /** Delivers an agent with its first message. */
  deliver(delivery: AgentDelivery): Promise<void>;
  /** Signals an agent; returns false for a repeated signal. */
  signal(signal: AgentSignal): Promise<boolean>;
  /**
   * Cancels every agent of a run; returns the events of these agents that no earlier request to the supervisor
   * contained.
   */
  cancelRun(order: RunCancellation): Promise<readonly CarriedEvent[]>;
  /**
   * Waits for an agent to end without a cancellation; returns the events of the agent that no earlier request to the
   * supervisor contained, or undefined when the agent has not ended.
   */
  awaitEnd(
    requestId: string,
    agent: AgentKey,
    stopReason: string,
  ): Promise<readonly CarriedEvent[] | undefined>;
  /** Cancels one agent, and returns its events; its journal is kept until the end of the run. */
  cancelAgent(order: AgentCancellation): Promise<readonly CarriedEvent[]>;
  /** Returns for each agent whether it is alive at the worker; undefined when the worker reports no presence (BD-3). */
  findAgents(agents: readonly AgentKey[]): Promise<readonly (boolean | undefined)[]>;
  /** Lists the log entries of a run. */
  listLogEntries(
    request: Omit<ListLogEntriesRequest, '$typeName'>,
    signal: AbortSignal,
  ): Promise<ListLogEntriesResponse>;
  close(): void;
}

/** Creates the gRPC client of agent-worker. */
export function createAgentWorkerPeer(options: RpcClientOptions): AgentWorkerPeer {
  const client = createRpcClient(AgentWorkerService, options);
  return {
    async deliver({ requestId, run, agent, credentials, slotGrant, message }) {
      const { text, dataJson = '', correlationId, from = '' } = message;
      const deadline = deadlineOf(run, agent);
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
          senderInstance: from,
          replyTo: from,
          text,
          dataJson,
          correlationId,
        },
        ...(deadline && { deadline: timestampFromDate(deadline) }),
        traceparent: run.traceparent,
      });
    },
    async signal({ requestId, tenant, runId, instance, name, payloadJson = '', approval, sender }) {
      const { accepted } = await client.signal(
        {
          requestId,
          tenant,
          runId,
          agentInstance: instance,
          name,
          payloadJson,
          ...(approval && { approval }),
          ...omitUndefined({ sender }),
        },
        // The client retries while a caller waits for the signal; the order engine repeats the signals of orders.
        { retry: sender !== undefined },
      );
      return accepted;
    },
    async cancelRun({ requestId, tenant, runId, stopReason, retention, answer, recordedEvents }) {
      const { events } = await client.cancel({
        requestId,
        tenant,
        runId,
        stopReason,
        retention: retentionMessage(retention),
        answer,
        recordedEvents: [...recordedEvents],
      });
      return events;
    },
    async awaitEnd(requestId, { tenant, runId, instance }, stopReason) {
      const request = { requestId, tenant, runId, agentInstance: instance, stopReason };
      const { hasEnded, events } = await client.cancel({ ...request, awaitEnd: true });
      return hasEnded ? events : undefined;
    },
    async cancelAgent({ requestId, tenant, runId, instance, stopReason, recordedEvents }) {
      const request = { requestId, tenant, runId, agentInstance: instance, stopReason };
      return (await client.cancel({ ...request, recordedEvents: [...recordedEvents] })).events;
    },
    async findAgents(agents) {
      const keys = agents.map(({ instance: agentInstance, ...run }) => ({ ...run, agentInstance }));
      const { presences } = await client.findAgents({ agents: keys });
      return agents.map((_, index) => {
        const presence = presences[index] ?? AgentPresence.UNSPECIFIED;
        return presence === AgentPresence.UNSPECIFIED
          ? undefined
          : presence === AgentPresence.ALIVE;
      });
    },
    listLogEntries: (request, signal) => client.listLogEntries(request, { signal, retry: true }),
    close: () => client.close(),
  };
}
