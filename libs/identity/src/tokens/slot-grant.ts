import { PermissionDeniedError, PreconditionError } from '@writ/kernel';
import type { AgentIdentity, Caller, SlotGrant } from '@writ/rpc';
import type { SignedToken, Signer } from '../keys/signer.ts';
import { EVERY_SERVICE } from '../services/names.ts';
import { parseToken, readClaims, readRegistered } from './parse-token.ts';
import { weightOf } from './priority-weight.ts';
import { tokenInvalid } from './token-error.ts';
import type { Claims, ClaimsInit } from './token-kinds.ts';
import type { Verifier } from './verifier.ts';

/** Maximum lifetime of a slot grant, ms: a pause takes effect within this time (SB-4). */
export const SLOT_GRANT_TTL_MS = 5_000;

/** Mints a slot grant with every service as audience (SB-4). `signer` is spawn-budget's. */
export function mintSlotGrant(
  signer: Signer,
  claims: ClaimsInit<'slot_grant'>,
  ttlMs: number = SLOT_GRANT_TTL_MS,
): Promise<SignedToken> {
  return signer.sign('slot_grant', { audience: EVERY_SERVICE, claims, ttlMs });
}

/** The content of a slot grant whose signature was not verified. */
export interface UnverifiedGrant {
  readonly claims: Claims<'slot_grant'>;
  readonly expireTime: Date;
}

/**
 * Parses a slot grant without verifying its signature, for the agent host that presents it to other services. The
 * result must not be used to authorize an action.
 * @throws UnauthenticatedError TOKEN_INVALID
 */
export function parseSlotGrant(token: string): UnverifiedGrant {
  const { payload } = parseToken('slot_grant', token);
  const { expireTime } = readRegistered('slot_grant', payload);
  return { claims: readClaims('slot_grant', payload), expireTime };
}

/** A presented slot grant, current or expired. */
export interface PresentedGrant {
  readonly grant: SlotGrant;
  readonly expired: boolean;
}

/**
 * Verifies a presented slot grant, which may have expired, and checks that it belongs to the calling agent (SB-4).
 * @throws UnauthenticatedError TOKEN_INVALID
 * @throws PermissionDeniedError SLOT_GRANT_MISMATCH naming the field
 * @throws UnavailableError KEYS_UNAVAILABLE
 */
export async function readSlotGrant(
  verifier: Verifier,
  token: string,
  agent: AgentIdentity,
  epoch: bigint | undefined,
): Promise<PresentedGrant> {
  const { claims, expireTime, expired } = await verifier.verify('slot_grant', token, {
    issuer: 'spawn-budget',
    audience: EVERY_SERVICE,
    allowExpired: true,
  });
  const priority = weightOf(claims.priority);
  if (priority === undefined) throw tokenInvalid('slot_grant', 'claims', 'it has no priority');
  const { tenant, runId, agentInstance } = claims;
  if (tenant !== agent.tenant) throw mismatch('tenant');
  if (runId !== agent.runId) throw mismatch('run_id');
  if (agentInstance !== agent.agent.instance) throw mismatch('agent_instance');
  // A grant of a later lease means that the caller's lease has ended (RT-2).
  if (epoch !== undefined && claims.epoch > epoch) throw mismatch('epoch');
  const grant = { tenant, runId, agentInstance, priority, epoch: claims.epoch, expireTime };
  return { grant: Object.freeze(grant), expired };
}

/** Whether the gate enforces slot grants, and whether the presented slot grant has expired. */
interface GrantRequirement {
  readonly enforced: boolean;
  readonly expired: boolean;
}

// Stored outside of the Caller, so that handlers cannot evaluate a requirement and must call requireSlotGrant.
const requirements = new WeakMap<Caller, GrantRequirement>();

/** Records the requirement of the gate for {@link requireSlotGrant}. */
export function setGrantRequirement(caller: Caller, requirement: GrantRequirement): void {
  requirements.set(caller, requirement);
}

/**
 * Checks that the calling agent has a current slot grant: for handlers of `unless_partial` RPCs,
 * when the request is not a partial final (SB-4). Passes when the gate does not enforce grants.
 * @throws PreconditionError SLOT_GRANT_REQUIRED, SLOT_GRANT_EXPIRED: renew the lease, or park
 */
export function requireSlotGrant(caller: Caller): void {
  const { enforced, expired } = requirements.get(caller) ?? { enforced: true, expired: false };
  if (!enforced || caller.slotGrant !== undefined) return;
  const instance = caller.agent?.agent.instance ?? 'the agent';
  throw expired
    ? new PreconditionError(
        'SLOT_GRANT_EXPIRED',
        `The slot grant of ${instance} has expired; renew its lease first.`,
      )
    : new PreconditionError(
        'SLOT_GRANT_REQUIRED',
        `Agent ${instance} requires a current slot grant; renew its lease first.`,
      );
}

function mismatch(field: string): PermissionDeniedError {
  return new PermissionDeniedError(
    'SLOT_GRANT_MISMATCH',
    `The slot grant belongs to another caller: its ${field} differs.`,
    { field },
  );
}
