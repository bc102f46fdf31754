import { toJson } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { parseDuration } from '@writ/config';
import type { AgentCredentials as CredentialsMessage } from '@writ/contracts/writ/supervision/v1/credentials_pb';
import {
  AgentKind,
  type AgentManifest,
  AgentManifestSchema,
  RefusalHandling,
} from '@writ/contracts/writ/supervision/v1/manifest_pb';
import type { DeliverRequest } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import {
  type AgentKey,
  canonicalDigest,
  InvalidRequestError,
  isJsonObject,
  isTraceparent,
  type JsonObject,
  type JsonValue,
  newTraceparent,
  PreconditionError,
} from '@writ/kernel';
import { type AnswerReview, REVIEW_DEFAULTS } from '../domain/answer-review.ts';
import type { AgentCredentials } from '../domain/credentials.ts';

/** A delivered external agent. */
export interface Delivery {
  readonly agent: AgentKey;
  readonly name: string;
  /** Undefined for the root. */
  readonly child: { readonly parentInstance: string; readonly clientId: string } | undefined;
  /** Name of the manifest of its sub-agents; empty when it may not have sub-agents. */
  readonly childName: string;
  readonly sessionId: string;
  readonly requestId: string;
  readonly digest: string;
  readonly models: readonly string[];
  readonly credentials: AgentCredentials;
  readonly slotGrant: string;
  readonly deadlineAt: Date | null;
  /** Undefined: the default. */
  readonly idleMs: number | undefined;
  /** Undefined: tool calls in answers of models are not reviewed. */
  readonly review: AnswerReview | undefined;
  readonly traceparent: string;
}

/**
 * Converts a delivery.
 * @param ownTime converts a time on the clock of the supervisor to this process's clock
 * @throws InvalidRequestError INCOMPLETE_DELIVERY; PreconditionError AGENT_KIND_NOT_IMPLEMENTED
 */
export function deliveryFrom(
  request: DeliverRequest,
  ownTime: (timeMs: number) => number,
): Delivery {
  const { tenant, agent, supervision, manifest, credentials, deadline, traceparent } = request;
  if (!agent || !supervision || !manifest || !credentials) {
    throw new InvalidRequestError(
      'INCOMPLETE_DELIVERY',
      'A delivery requires agent, supervision, manifest and credentials.',
    );
  }
  if (manifest.kind !== AgentKind.EXTERNAL) {
    throw new PreconditionError(
      'AGENT_KIND_NOT_IMPLEMENTED',
      'agent-proxy serves external agents only; deliver the agent to agent-worker.',
      { field: 'manifest.kind' },
    );
  }
  const { model } = manifest;
  const options = optionsOf(manifest);
  return {
    agent: { tenant, runId: supervision.runId, instance: agent.instance },
    name: agent.name,
    child: childOf(request),
    childName: manifest.subAgents[0]?.name ?? '',
    sessionId: supervision.sessionId,
    requestId: request.requestId,
    digest: canonicalDigest({
      agent: agent.name,
      manifest: toJson(AgentManifestSchema, manifest) as JsonValue,
    }),
    models: model === undefined ? [] : [model.model, ...model.alsoAllowed],
    credentials: credentialsFrom(credentials, ownTime),
    slotGrant: request.slotGrant,
    deadlineAt: deadline === undefined ? null : new Date(ownTime(timestampMs(deadline))),
    idleMs: durationOf(options.idle_timeout),
    review: reviewOf(manifest, options),
    traceparent: isTraceparent(traceparent) ? traceparent : newTraceparent(),
  };
}

/**
 * Returns the parent and client id of a sub-agent; undefined for the root. SpawnChild sends the digest of the client id
 * as the correlation id of the message.
 */
function childOf({ supervision, message }: DeliverRequest): Delivery['child'] {
  const parentInstance = supervision?.parent?.instance;
  if (parentInstance === undefined) return undefined;
  return { parentInstance, clientId: message?.correlationId ?? '' };
}

/** Converts an agent's tokens, which expire by the clock of the supervisor. */
export function credentialsFrom(
  message: CredentialsMessage,
  ownTime: (timeMs: number) => number,
): AgentCredentials {
  return {
    supervisor: message.supervisorToken,
    spawnBudget: message.spawnBudgetToken,
    executionMeter: message.executionMeterToken,
    toolGateway: message.toolGatewayToken,
    expiresAt: message.expireTime === undefined ? 0 : ownTime(timestampMs(message.expireTime)),
  };
}

function optionsOf({ optionsJson }: AgentManifest): JsonObject {
  const options = optionsJson === '' ? {} : (JSON.parse(optionsJson) as JsonValue);
  return isJsonObject(options) ? options : {};
}

function durationOf(option: JsonValue | undefined): number | undefined {
  return typeof option === 'string' ? parseDuration(option) : undefined;
}

function reviewOf(
  { onRefusal, limits }: AgentManifest,
  { client_tools: mode, hold }: JsonObject,
): AnswerReview | undefined {
  if (mode !== 'review') return undefined;
  return {
    holdMs: durationOf(hold) ?? REVIEW_DEFAULTS.holdMs,
    maxRefusals: limits?.maxRefusals ?? REVIEW_DEFAULTS.maxRefusals,
    endsRun: onRefusal === RefusalHandling.STOP,
  };
}
