import { toBinary, toJson } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { AgentManifestSchema } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { SupervisionSchema } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import {
  type AgentWorkerService,
  type DeliverRequest,
  MessageSchema,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import {
  AlreadyExistsError,
  canonicalDigest,
  InvalidRequestError,
  isTraceparent,
  newTraceparent,
  PermissionDeniedError,
  PreconditionError,
  sha256Hex,
} from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { DELIVERED } from '../domain/agent/state.ts';
import { supervisionText } from '../domain/agent/supervision.ts';
import { findAgent, insertAgent } from '../store/agents.ts';
import { cancelOf } from '../store/cancels.ts';
import { insertMessage } from '../store/inbox.ts';
import type { WorkerTransaction } from '../store/worker-store.ts';
import { credentialsFrom } from '../wire/credentials.ts';
import { manifestFrom } from '../wire/manifest.ts';
import { supervisionFrom } from '../wire/supervision.ts';
import type { Dependencies } from './dependencies.ts';

type Part = 'agent' | 'supervision' | 'manifest' | 'credentials' | 'message';

type Delivery = Omit<DeliverRequest, Part> & {
  readonly [K in Part]: NonNullable<DeliverRequest[K]>;
};

/** Stores a new agent durably before it answers (RT-3); a repeated delivery changes nothing. */
export function deliver({
  store,
  clock,
  tenants,
  canRun,
  agents,
}: Dependencies): Handler<typeof AgentWorkerService.method.deliver> {
  return async (request, call) => {
    assertServesTenant(call.caller, request.tenant);
    if (tenants.length > 0 && !tenants.includes(request.tenant)) throw notServed(request.tenant);
    const rows = rowsOf(complete(request), clock.now());
    const { kind, name } = rows.manifest;
    if (!canRun(kind, name)) throw notImplemented(kind, name);
    const accepted = await store.transaction(async (trx) => {
      if (await isRepeat(trx, rows)) return false;
      await insertAgent(trx, rows.agent);
      await insertMessage(trx, rows.key, rows.message, rows.agent.created_at);
      return true;
    });
    if (accepted) agents.nudge();
    return { accepted };
  };
}

type Rows = ReturnType<typeof rowsOf>;

async function isRepeat(trx: WorkerTransaction, { key, agent }: Rows): Promise<boolean> {
  const known = await findAgent(trx, key);
  if (known !== undefined && known.request_id !== agent.request_id) {
    throw new AlreadyExistsError(
      'AGENT_EXISTS',
      `Agent ${key.instance} of run ${key.runId} was already delivered by another request.`,
      { agent: key.instance },
    );
  }
  if (known !== undefined && known.request_digest !== agent.request_digest) {
    throw new InvalidRequestError(
      'REQUEST_ID_REUSED',
      'request_id was already used for another delivery.',
      { field: 'request_id' },
    );
  }
  if (known !== undefined) return true;
  // A delivery that arrives after the end of its run must not start an agent.
  const cancel = await cancelOf(trx, key);
  if (cancel === undefined) return false;
  throw new PreconditionError('RUN_ENDED', `Run ${key.runId} has ended: ${cancel.stop_reason}.`, {
    stop_reason: cancel.stop_reason,
  });
}

function rowsOf(delivery: Delivery, at: Date) {
  const { tenant, agent, requestId, message } = delivery;
  const manifest = manifestFrom(delivery.manifest);
  const supervision = supervisionFrom(delivery.supervision);
  const key = { tenant, runId: supervision.runId, instance: agent.instance };
  const { $typeName: _, ...plainMessage } = message;
  return {
    key,
    manifest,
    message: plainMessage,
    agent: {
      tenant,
      run_id: key.runId,
      instance: key.instance,
      name: agent.name,
      kind: manifest.kind,
      request_id: requestId,
      request_digest: digestOf(delivery),
      session_id: supervision.sessionId,
      manifest: JSON.stringify(manifest),
      supervision: supervisionText(supervision),
      state: DELIVERED.state,
      stop_reason: null,
      waiting_for: '[]',
      wake_at: null,
      epoch: 0n,
      lease_owner: null,
      lease_expires_at: null,
      credentials: JSON.stringify(credentialsFrom(delivery.credentials)),
      deadline_at: delivery.deadline === undefined ? null : timestampDate(delivery.deadline),
      traceparent: isTraceparent(delivery.traceparent) ? delivery.traceparent : newTraceparent(),
      last_traceparent: null,
      journal_length: 0,
      step_started: 0,
      step_ended: 0,
      failures: 0,
      reply_to: message.replyTo === '' ? null : message.replyTo,
      created_at: at,
      ended_at: null,
    },
  };
}

/**
 * Returns the digest that identifies a delivery; it excludes the tokens, which are new in each
 * attempt.
 */
function digestOf({ agent, supervision, manifest, message }: Delivery): string {
  return canonicalDigest({
    agent: agent.name,
    supervision: toJson(SupervisionSchema, supervision),
    manifest: toJson(AgentManifestSchema, manifest),
    message: sha256Hex(toBinary(MessageSchema, message)),
  });
}

function complete(request: DeliverRequest): Delivery {
  const { agent, supervision, manifest, credentials, message } = request;
  if (agent && supervision && manifest && credentials && message) {
    return { ...request, agent, supervision, manifest, credentials, message };
  }
  throw new InvalidRequestError(
    'INCOMPLETE_DELIVERY',
    'A delivery requires agent, supervision, manifest, credentials and message.',
  );
}

function notServed(tenant: string): PermissionDeniedError {
  return new PermissionDeniedError(
    'TENANT_NOT_SERVED',
    `This worker does not serve tenant "${tenant}".`,
    { tenant, service: 'agent-worker' },
  );
}

function notImplemented(kind: string, name: string): PreconditionError {
  const why =
    kind === 'custom'
      ? `no module of WRIT_AGENT_MODULES defines the agent ${name}, whose kind is custom`
      : `it does not implement the kind ${kind}`;
  return new PreconditionError(
    'AGENT_KIND_NOT_IMPLEMENTED',
    `This worker cannot run the agent: ${why}.`,
    {
      field: 'manifest.kind',
      kind,
    },
  );
}
