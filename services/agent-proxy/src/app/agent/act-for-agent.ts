import { setTimeout as delay } from 'node:timers/promises';
import { type AgentKey, backoffMs } from '@writ/kernel';
import type { CallOptions } from '@writ/rpc';
import type { AgentCredentials } from '../../domain/credentials.ts';
import { mayRenew } from '../../domain/retry-with-new-credentials.ts';
import { EPOCH } from '../../peers/peers.ts';
import type { AgentTokens } from './agent-tokens.ts';
import type { Slots } from './slots.ts';

/**
 * Timeout of one call, ms. It can be short, because calls are idempotent by call_id: a retry joins the call in
 * progress.
 */
const CALL_MS = 10_000;
const BACKOFF = { baseMs: 100, maxMs: 2_000 };

type Audience = keyof Omit<AgentCredentials, 'expiresAt'>;

/**
 * Calls a service on behalf of an agent, with its token, its slot grant and the epoch. When the service rejects the
 * token or the grant, the call is retried with new ones: once, or up to ten attempts in total while the service does
 * not know the signing key yet.
 * @throws what Slots.grant, AgentTokens.of and `work` throw
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
  return await actAs(tokens, { agent, audience, grant, forget: () => slots.forget(agent) }, work);
}

/**
 * Calls a service on behalf of an agent without a slot grant. Used for calls that paused and halted agents may make:
 * withdrawing a call and listing tools. Renews the token like actFor.
 * @throws what AgentTokens.of and `work` throw
 */
export async function actWithoutSlot<T>(
  { tokens }: { readonly tokens: Pick<AgentTokens, 'of'> },
  agent: AgentKey,
  audience: Audience,
  work: (options: CallOptions) => Promise<T>,
): Promise<T> {
  const grant = async () => ({});
  return await actAs(tokens, { agent, audience, grant, forget: () => undefined }, work);
}

interface Actor {
  readonly agent: AgentKey;
  readonly audience: Audience;
  readonly grant: () => Promise<Pick<CallOptions, 'slotGrant'>>;
  readonly forget: () => void;
}

async function actAs<T>(
  tokens: Pick<AgentTokens, 'of'>,
  { agent, audience, grant, forget }: Actor,
  work: (options: CallOptions) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const slot = await grant();
    const { [audience]: agentToken } = await tokens.of(agent, attempt > 1);
    const auth = { agentToken, ...slot, epoch: EPOCH };
    try {
      return await work({ ...auth, timeoutMs: CALL_MS, retry: true, retryAborted: true });
    } catch (error) {
      if (!mayRenew(error, attempt)) throw error;
      forget();
      await pauseAfter(attempt);
    }
  }
}

/** Waits before a renewal of the credentials; the first renewal has no delay. */
export async function pauseAfter(attempt: number): Promise<void> {
  if (attempt > 1) await delay(backoffMs(attempt, BACKOFF));
}
