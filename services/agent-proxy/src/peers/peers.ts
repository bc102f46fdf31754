import type { Dialect } from '@writ/contracts/writ/model/v1/model_pb';
import type {
  GenerateResponse,
  ResponseAccess,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import {
  RenewIntent,
  SpawnBudgetService,
} from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { type ServiceName, type ServiceTls, type Signer, serviceTokens } from '@writ/identity';
import { type AgentKey, type Clock, DataLossError, type PeerClocks } from '@writ/kernel';
import { createRpcClient, type Loopback, type RpcClient } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import type { AgentProxyConfig } from '../config.ts';
import type { AgentCredentials } from '../domain/credentials.ts';
import { credentialsFrom } from '../wire/delivery.ts';
import { type SubAgentPeers, subAgentPeers } from './sub-agent-peers.ts';
import { createToolPeers, type ToolPeers } from './tool-peers.ts';

/**
 * The lease epoch of every external agent. Such an agent sends concurrent requests and has no journal, so all replicas
 * use the same epoch. Call ids and freezes provide the guarantees that the lease epoch provides for agents of a worker
 * (RT-2).
 */
export const EPOCH = 1n;

/** The answer to a renewal: a grant, the reason of a refusal, or the state of the slot. */
export type SlotAnswer =
  | { readonly grant: string }
  | { readonly refusal: string }
  | { readonly state: 'paused' | 'released' };

/** A request in the format of the provider; the provider counts its tokens. */
export interface CountCall {
  readonly model: string;
  readonly dialect: Dialect;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyJson: Uint8Array<ArrayBuffer>;
}

/** A model call in the format of the provider. */
export interface NativeCall extends CountCall {
  readonly callId: string;
  readonly disconnectGraceMs: number;
}

/** A request to read, cancel or delete an answer that the provider has stored. */
export interface StoredResponseCall {
  readonly responseId: string;
  readonly access: ResponseAccess;
  /** Query string of the request, without the question mark. */
  readonly query: string;
}

/** An agent key with the conversation or run that a request names. */
export interface RunQuery {
  readonly apiKey: string;
  /** SHA-256 of the name of the conversation, in hex; empty when the request names no conversation. */
  readonly conversation: string;
  /** Id of the run that the request names; empty when it names no run. */
  readonly runId: string;
  /** Name of the client, from its User-Agent header. */
  readonly client: string;
}

/** The open run of an agent key, with its root agent, which the supervisor has delivered to agent-proxy. */
export interface OpenRun {
  readonly key: AgentKey;
  readonly sessionId: string;
}

/** The services that agent-proxy calls. */
export interface ProxyPeers extends ToolPeers, SubAgentPeers {
  /** Calls a model; a repeated call returns the record without charge (EM-7). */
  generate(
    call: NativeCall,
    token: string,
    grant: string,
    signal: AbortSignal,
  ): AsyncIterable<GenerateResponse>;
  /** Asks the provider how many tokens a request has; returns the answer of the provider as JSON. */
  countTokens(call: CountCall, token: string, grant: string): Promise<Uint8Array>;
  /** Reads, cancels or deletes an answer that the provider has stored; returns the response of the provider as JSON. */
  accessResponse(access: StoredResponseCall, token: string, grant: string): Promise<Uint8Array>;
  /** Renews the slot of an agent, or reports with `suspend` that the agent waits. */
  renew(token: string, intent: 'run' | 'suspend'): Promise<SlotAnswer>;
  /** Returns new tokens; the given one may have expired. */
  refreshTokens(supervisorToken: string): Promise<AgentCredentials>;
  /**
   * Returns the run in which the holder of an agent key acts; opens one when there is none (AP-1).
   * @throws what OpenExternalRun throws
   */
  openRun(request: RunQuery): Promise<OpenRun>;
  /** Reports that an agent has ended. */
  reportOutcome(requestId: string, stopReason: string, supervisorToken: string): Promise<void>;
  close(): void;
}

/** Dependencies of {@link createPeers}. */
export interface PeerParts {
  readonly config: AgentProxyConfig;
  readonly clock: Clock;
  readonly peerClocks: PeerClocks;
  readonly telemetry: Telemetry;
  readonly signer: Signer;
  readonly addressOf: (service: ServiceName) => string;
  readonly tls?: ServiceTls | undefined;
  readonly loopback?: Loopback | undefined;
}

/** Creates clients of all peers; each connects on its first call. */
export function createPeers(parts: PeerParts): ProxyPeers {
  const { config, clock, peerClocks, telemetry, signer, addressOf, tls, loopback } = parts;
  const { replica, tenants } = config;
  const to = (service: ServiceName) => ({
    address: () => addressOf(service),
    telemetry,
    serviceToken: serviceTokens(signer, { audience: service, replica, tenants }),
    tls: tls?.to(service),
    loopback,
    clock,
    onPeerTime: (timeMs: number) => peerClocks.observe(service, timeMs),
  });
  const models = createRpcClient(ModelService, to('execution-meter'));
  const slots = createRpcClient(SpawnBudgetService, to('spawn-budget'));
  const supervision = createRpcClient(SupervisionService, to('supervisor'));
  const tools = createToolPeers({ supervisor: to('supervisor'), gateway: to('tool-gateway') });
  const reviews = createRpcClient(ReviewService, to('supervisor'));
  const subAgents = subAgentPeers(supervision, reviews);
  return {
    ...tools,
    ...subAgents,
    generate: (call, agentToken, slotGrant, signal) =>
      models.generate(
        {
          callId: call.callId,
          model: call.model,
          native: { dialect: call.dialect, headers: call.headers, bodyJson: call.bodyJson },
          disconnectGrace: {
            seconds: BigInt(Math.round(call.disconnectGraceMs / 1_000)),
            nanos: 0,
          },
        },
        { agentToken, slotGrant, epoch: EPOCH, signal },
      ),
    async countTokens({ model, dialect, headers, bodyJson }, agentToken, slotGrant) {
      const request = { model, native: { dialect, headers, bodyJson } };
      const options = { agentToken, slotGrant, epoch: EPOCH };
      return (await models.countTokens(request, options)).dataJson;
    },
    async accessResponse(access, agentToken, slotGrant) {
      const options = { agentToken, slotGrant, epoch: EPOCH };
      return (await models.accessResponse({ ...access }, options)).dataJson;
    },
    renew: (agentToken, intent) => renew(slots, agentToken, intent),
    async refreshTokens(agentToken) {
      const { credentials } = await supervision.refreshTokens({}, { agentToken, epoch: EPOCH });
      if (credentials === undefined) {
        throw new DataLossError(
          'CREDENTIALS_MISSING',
          'The response of the supervisor lacks credentials.',
        );
      }
      return credentialsFrom(credentials, (timeMs) => peerClocks.toOwn('supervisor', timeMs));
    },
    async openRun(query) {
      const { tenant, runId, sessionId, agent } = await supervision.openExternalRun(query, {
        retry: true,
      });
      if (agent === undefined) {
        throw new DataLossError(
          'INVALID_RUN',
          'The response of the supervisor lacks the agent of the run.',
        );
      }
      return { key: { tenant, runId, instance: agent.instance }, sessionId };
    },
    async reportOutcome(requestId, stopReason, agentToken) {
      const report = { requestId, stopReason, phase: 'worker' };
      await supervision.reportOutcome(report, { agentToken, epoch: EPOCH, retry: true });
    },
    close() {
      for (const client of [models, slots, supervision, reviews, tools]) client.close();
    },
  };
}

async function renew(
  client: RpcClient<typeof SpawnBudgetService>,
  agentToken: string,
  intent: 'run' | 'suspend',
): Promise<SlotAnswer> {
  const asked = intent === 'run' ? RenewIntent.RUN : RenewIntent.SUSPEND;
  const { agents } = await client.renew({ agents: [{ agentToken, epoch: EPOCH, intent: asked }] });
  const [answer] = agents;
  if (answer === undefined) throw incompleteSlot();
  const { slot, refusal } = answer;
  if (refusal !== '') return { refusal };
  if (slot === undefined) throw incompleteSlot();
  if (slot.grant !== '') return { grant: slot.grant };
  return { state: slot.state === SlotState.RELEASED ? 'released' : 'paused' };
}

function incompleteSlot(): DataLossError {
  return new DataLossError('INVALID_SLOT', 'The response of spawn-budget lacks the slot.');
}
