import { toBinary, toJson } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  AgentManifestSchema,
  type AgentManifest as ManifestMessage,
} from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { SupervisionSchema } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import {
  type DeliverRequest,
  MessageSchema,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { parseSlotGrant } from '@writ/identity';
import {
  type AgentKey,
  type AgentKind,
  canonicalDigest,
  InvalidRequestError,
  isTraceparent,
  isWritError,
  newTraceparent,
  sha256Hex,
} from '@writ/kernel';
import { plainOf } from '@writ/rpc';
import type { Delivery } from '../domain/agent/delivery.ts';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { OwnTime } from '../domain/agent/peer-time.ts';
import type { SlotGrant } from '../domain/agent/slot.ts';
import { credentialsFrom } from './credentials.ts';
import { supervisionFrom } from './supervision.ts';

/** Kinds that need no model (AG-4). */
const MODEL_LESS: ReadonlySet<AgentKind> = new Set(['user-proxy', 'flow', 'custom']);
const NO_MODEL = { model: '', alsoAllowed: [], jsonMode: false };
const NO_CONTEXT = { strategy: '', options: {}, strategies: [] };

type Part = 'agent' | 'supervision' | 'manifest' | 'credentials' | 'message';

type CompleteRequest = Omit<DeliverRequest, Part> & {
  readonly [K in Part]: NonNullable<DeliverRequest[K]>;
};

/**
 * Converts a delivery.
 * @throws InvalidRequestError INCOMPLETE_DELIVERY when a required part is missing; otherwise an error that names the
 *   invalid field
 */
export function deliveryFrom(request: DeliverRequest, ownTime: OwnTime): Delivery {
  const complete = assertComplete(request);
  const { tenant, agent, requestId, deadline, traceparent } = complete;
  const { $typeName: _, ...message } = complete.message;
  const manifest = manifestFrom(complete.manifest);
  const supervision = supervisionFrom(complete.supervision);
  const key = { tenant, runId: supervision.runId, instance: agent.instance };
  return {
    agent: key,
    name: agent.name,
    requestId,
    digest: digestOf(complete),
    manifest,
    supervision,
    credentials: credentialsFrom(complete.credentials, ownTime),
    slotGrant: slotGrantFrom(complete.slotGrant, key, ownTime),
    message,
    deadlineAt: deadline === undefined ? null : new Date(ownTime(timestampMs(deadline))),
    traceparent: isTraceparent(traceparent) ? traceparent : newTraceparent(),
  };
}

/**
 * Returns the slot grant of a delivery; undefined when it is malformed or for another agent, so that the worker
 * requests a new one (SB-4).
 */
function slotGrantFrom(token: string, agent: AgentKey, ownTime: OwnTime): SlotGrant | undefined {
  if (token === '') return undefined;
  try {
    const { claims, expireTime } = parseSlotGrant(token);
    const { tenant, runId, agentInstance } = claims;
    const isOwn =
      tenant === agent.tenant && runId === agent.runId && agentInstance === agent.instance;
    return isOwn ? { token, expiresAt: ownTime(expireTime.getTime()) } : undefined;
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

function digestOf({ agent, supervision, manifest, message }: CompleteRequest): string {
  return canonicalDigest({
    agent: agent.name,
    supervision: toJson(SupervisionSchema, supervision),
    manifest: toJson(AgentManifestSchema, manifest),
    message: sha256Hex(toBinary(MessageSchema, message)),
  });
}

function assertComplete(request: DeliverRequest): CompleteRequest {
  const { agent, supervision, manifest, credentials, message } = request;
  if (agent && supervision && manifest && credentials && message) {
    return { ...request, agent, supervision, manifest, credentials, message };
  }
  throw new InvalidRequestError(
    'INCOMPLETE_DELIVERY',
    'A delivery requires agent, supervision, manifest, credentials and message.',
  );
}

/**
 * Converts a manifest into the form that is stored with the agent.
 * @throws InvalidRequestError INVALID_MANIFEST or INVALID_JSON naming the field
 */
function manifestFrom(message: ManifestMessage): AgentManifest {
  const plain = plainOf(AgentManifestSchema, message, {
    field: 'manifest',
    reason: 'INVALID_MANIFEST',
  });
  // The meter and spawn-budget enforce the budgets.
  const { kind, executionBudget: _execution, spawnBudget: _spawn, ...rest } = plain;
  if (kind === undefined) throw missing('kind');
  if (rest.model === undefined && !MODEL_LESS.has(kind)) throw missing('model');
  const { strategies, ...context } = rest.context ?? NO_CONTEXT;
  return {
    model: NO_MODEL,
    limits: {},
    guardrails: {},
    ...rest,
    kind,
    context: strategies.length === 0 ? context : { ...context, strategies },
  };
}

function missing(field: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_MANIFEST', `manifest.${field} is required.`, {
    field: `manifest.${field}`,
  });
}
