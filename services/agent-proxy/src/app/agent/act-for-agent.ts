import { type AgentKey, isWritError } from '@writ/kernel';
import type { CallOptions } from '@writ/rpc';
import type { AgentCredentials } from '../../domain/credentials.ts';
import { EPOCH } from '../../peers/peers.ts';
import type { AgentTokens } from './agent-tokens.ts';
import type { Slots } from './slots.ts';

/** Timeout of one call, ms: a repeat joins a call in progress, because calls are idempotent by call_id. */
const CALL_MS = 10_000;

type Audience = keyof Omit<AgentCredentials, 'expiresAt'>;

/**
 * Calls a service on behalf of an agent, with its token, its slot grant and the epoch. Renews the token or the grant
 * once when the service refuses it.
 * @throws what the slots, the tokens and `work` throw
 */
export async function actFor<T>(
  {
    slots,
    tokens,
  }: {
    readonly slots: Pick<Slots, 'grant' | 'forget'>;
    readonly tokens: Pick<AgentTokens, 'of'>;
  },
  agent: AgentKey,
  audience: Audience,
  work: (options: CallOptions) => Promise<T>,
): Promise<T> {
  const grant = async () => ({ slotGrant: await slots.grant(agent) });
  return await attempt(tokens, { agent, audience, grant, forget: () => slots.forget(agent) }, work);
}

/**
 * Likewise, without a slot grant: for withdrawals, which a paused or halted agent may make.
 * @throws what the tokens and `work` throw
 */
export async function actWithoutSlot<T>(
  { tokens }: { readonly tokens: Pick<AgentTokens, 'of'> },
  agent: AgentKey,
  audience: Audience,
  work: (options: CallOptions) => Promise<T>,
): Promise<T> {
  const grant = async () => ({});
  return await attempt(tokens, { agent, audience, grant, forget: () => undefined }, work);
}

interface Actor {
  readonly agent: AgentKey;
  readonly audience: Audience;
  readonly grant: () => Promise<Pick<CallOptions, 'slotGrant'>>;
  readonly forget: () => void;
}

async function attempt<T>(
  tokens: Pick<AgentTokens, 'of'>,
  { agent, audience, grant, forget }: Actor,
  work: (options: CallOptions) => Promise<T>,
): Promise<T> {
  for (let isFirst = true; ; isFirst = false) {
    const slot = await grant();
    const { [audience]: agentToken } = await tokens.of(agent, !isFirst);
    const auth = { agentToken, ...slot, epoch: EPOCH };
    try {
      return await work({ ...auth, timeoutMs: CALL_MS, retry: true, retryAborted: true });
    } catch (error) {
      if (!isFirst || !isRenewable(error)) throw error;
      forget();
    }
  }
}

const RENEWABLE = ['TOKEN_EXPIRED', 'TOKEN_INVALID', 'SLOT_GRANT_EXPIRED', 'SLOT_GRANT_REQUIRED'];

/** The key of the supervisor may have been rotated since, or the grant may have expired in transit. */
function isRenewable(error: unknown): boolean {
  return isWritError(error) && RENEWABLE.includes(error.reason);
}
