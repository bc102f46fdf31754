import {
  AlreadyExistsError,
  InvalidRequestError,
  PreconditionError,
  UnavailableError,
} from '@writ/kernel';
import type { Delivery } from '../../domain/agent/delivery.ts';
import { DELIVERED } from '../../domain/agent/state.ts';
import { supervisionText } from '../../domain/agent/supervision.ts';
import { type AgentRow, findAgent, insertAgent } from '../../store/agents.ts';
import { cancelOf } from '../../store/cancels.ts';
import { insertMessage } from '../../store/inbox.ts';
import { agentColumns } from '../../store/keys.ts';
import type { LeaseTerms } from '../../store/leases.ts';
import type { WorkerTransaction } from '../../store/worker-store.ts';
import type { Dependencies } from './dependencies.ts';

/**
 * Stores a new agent durably, with its lease if this worker runs it immediately (RT-3). A repeated delivery changes
 * nothing. Returns whether the agent is new.
 */
export async function deliverAgent(
  { store, clock, codeVersionOf, checkSettings, readFirst, agents }: Dependencies,
  delivery: Delivery,
): Promise<boolean> {
  const { agent: key, manifest, message } = delivery;
  const version = codeVersionOf(manifest.kind, manifest.name);
  if (version === undefined) throw notImplemented(manifest.kind, manifest.name);
  checkSettings(manifest);
  return await agents.accept(delivery, async (lease) => {
    const at = lease?.at ?? clock.now();
    const firstReads = lease === undefined ? null : JSON.stringify(await readFirst(delivery));
    const row = {
      ...agentRow(delivery, at, lease),
      code_version: version,
      first_reads: firstReads,
    };
    const insert = async (trx: WorkerTransaction) => {
      if (await isRepeat(trx, delivery)) return undefined;
      await insertAgent(trx, row);
      await insertMessage(trx, key, message, at);
      return row;
    };
    return await store.transaction(insert, { run: key });
  });
}

/**
 * Checks that this worker serves a tenant. Another worker may serve it, so the supervisor retries the delivery (SYS-6).
 * @throws UnavailableError TENANT_NOT_SERVED
 */
export function assertTenantServed({ tenants }: Pick<Dependencies, 'tenants'>, tenant: string) {
  if (tenants.length > 0 && !tenants.includes(tenant)) throw notServed(tenant);
}

async function isRepeat(
  trx: WorkerTransaction,
  { agent: key, requestId, digest }: Delivery,
): Promise<boolean> {
  const known = await findAgent(trx, key);
  if (known !== undefined && known.request_id !== requestId) {
    throw new AlreadyExistsError(
      'AGENT_EXISTS',
      `Agent ${key.instance} of run ${key.runId} was already delivered by another request.`,
      { agent: key.instance },
    );
  }
  if (known !== undefined && known.request_digest !== digest) {
    throw new InvalidRequestError(
      'REQUEST_ID_REUSED',
      'request_id was already used for another delivery.',
      { field: 'request_id' },
    );
  }
  if (known !== undefined) return true;
  // A delivery that arrives after the end of its agent or run must not start the agent.
  const cancel = await cancelOf(trx, key);
  if (cancel === undefined) return false;
  throw new PreconditionError(
    'RUN_ENDED',
    `Agent ${key.instance} of run ${key.runId} has ended: ${cancel.stop_reason}.`,
    { stop_reason: cancel.stop_reason },
  );
}

function agentRow(
  delivery: Delivery,
  at: Date,
  lease: LeaseTerms | undefined,
): Omit<AgentRow, 'code_version' | 'first_reads'> {
  const { agent, name, requestId, digest, manifest, supervision, message } = delivery;
  return {
    ...agentColumns(agent),
    name,
    kind: manifest.kind,
    request_id: requestId,
    request_digest: digest,
    session_id: supervision.sessionId,
    manifest: JSON.stringify(manifest),
    supervision: supervisionText(supervision),
    state: DELIVERED.state,
    stop_reason: null,
    waiting_for: '[]',
    wake_at: null,
    waiting_since: null,
    epoch: lease === undefined ? 0n : 1n,
    lease_owner: lease?.owner ?? null,
    lease_expires_at: lease?.expiresAt ?? null,
    credentials: JSON.stringify(delivery.credentials),
    deadline_at: delivery.deadlineAt,
    traceparent: delivery.traceparent,
    last_traceparent: null,
    journal_length: 0,
    step_started: 0,
    step_ended: 0,
    unreported_events: '[]',
    failures: 0,
    failed_length: 0,
    partial_final: null,
    reply_to: message.replyTo === '' ? null : message.replyTo,
    created_at: at,
    ended_at: null,
  };
}

function notServed(tenant: string): UnavailableError {
  return new UnavailableError(
    'TENANT_NOT_SERVED',
    `This worker does not serve tenant "${tenant}" (WRIT_WORKER_TENANTS); deliver to another worker.`,
    { tenant, service: 'agent-worker', setting: 'WRIT_WORKER_TENANTS' },
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
