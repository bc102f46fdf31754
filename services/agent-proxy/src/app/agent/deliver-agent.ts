import {
  AlreadyExistsError,
  InvalidRequestError,
  PreconditionError,
  UnavailableError,
} from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { cancelsOf, findAgent, insertAgent } from '../../store/agents.ts';
import type { ProxyTransaction } from '../../store/proxy-store.ts';
import type { Delivery } from '../../wire/delivery.ts';

/**
 * Stores an external agent durably; a repeated delivery changes nothing (RT-3, AP-1). Returns whether the agent is new.
 * @throws AlreadyExistsError AGENT_EXISTS; InvalidRequestError REQUEST_ID_REUSED; PreconditionError RUN_ENDED
 */
export async function deliverAgent(
  { store, clock, slots, config }: ProxyContext,
  delivery: Delivery,
): Promise<boolean> {
  const { agent: key, name, requestId, digest, models, deadlineAt, traceparent } = delivery;
  const at = clock.now();
  const insert = async (trx: ProxyTransaction): Promise<boolean> => {
    if (await isRepeat(trx, delivery)) return false;
    await insertAgent(trx, {
      tenant: key.tenant,
      run_id: key.runId,
      instance: key.instance,
      name,
      parent_instance: delivery.child?.parentInstance ?? null,
      client_id: delivery.child?.clientId ?? null,
      child_name: delivery.childName,
      session_id: delivery.sessionId,
      request_id: requestId,
      request_digest: digest,
      models: JSON.stringify(models),
      credentials: JSON.stringify(delivery.credentials),
      deadline_at: deadlineAt,
      review: delivery.review === undefined ? null : JSON.stringify(delivery.review),
      idle_ms: delivery.idleMs ?? (delivery.child ? config.subAgentIdleMs : config.idleMs),
      used_at: at,
      traceparent,
      stop_reason: null,
      created_at: at,
      ended_at: null,
    });
    return true;
  };
  const isNew = await store.transaction(insert, { run: key });
  if (isNew) slots.delivered(key, delivery.slotGrant);
  return isNew;
}

/**
 * Checks that this process serves the external agents of a tenant (SYS-6).
 * @throws UnavailableError TENANT_NOT_SERVED
 */
export function assertTenantServed({ config }: Pick<ProxyContext, 'config'>, tenant: string): void {
  const { tenants } = config;
  if (tenants.length === 0 || tenants.includes(tenant)) return;
  throw new UnavailableError(
    'TENANT_NOT_SERVED',
    `This agent-proxy does not serve tenant "${tenant}" (WRIT_AGENT_PROXY_TENANTS).`,
    { tenant, service: 'agent-proxy', setting: 'WRIT_AGENT_PROXY_TENANTS' },
  );
}

async function isRepeat(
  trx: ProxyTransaction,
  { agent: key, requestId, digest }: Delivery,
): Promise<boolean> {
  const known = await findAgent(trx, key);
  if (known === undefined) {
    const isEnd = ({ instance }: { readonly instance: string }) =>
      instance === '' || instance === key.instance;
    const cancel = (await cancelsOf(trx, key)).find(isEnd);
    if (cancel === undefined) return false;
    throw new PreconditionError('RUN_ENDED', `Run ${key.runId} has ended: ${cancel.stop_reason}.`, {
      stop_reason: cancel.stop_reason,
    });
  }
  if (known.request_id !== requestId) {
    throw new AlreadyExistsError(
      'AGENT_EXISTS',
      `Agent ${key.instance} of run ${key.runId} was already delivered by another request.`,
      { agent: key.instance },
    );
  }
  if (known.request_digest === digest) return true;
  throw new InvalidRequestError(
    'REQUEST_ID_REUSED',
    'request_id was already used for another delivery.',
    { field: 'request_id' },
  );
}
