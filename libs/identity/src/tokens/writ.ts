import { type CallKey, isWritError, newId, PermissionDeniedError, sha256Hex } from '@writ/kernel';
import type { SignedToken, Signer } from '../keys/signer.ts';
import type { ClaimsInit } from './token-kinds.ts';
import type { VerifiedToken, Verifier } from './verifier.ts';

/** Mints a writ with the gateway as audience; its `jti` is the writ id (TG-1, SV-6). `signer` is the supervisor's. */
export function mintWrit(
  signer: Signer,
  claims: ClaimsInit<'writ'>,
  ttlMs: number,
  id: string = newId('writ'),
): Promise<SignedToken> {
  return signer.sign('writ', { audience: 'tool-gateway', claims, ttlMs, id });
}

/** The requested call; the writ must authorize exactly this call. */
export interface OrderedCall {
  readonly call: CallKey;
  readonly tool: string;
  /** The exact argument text; the writ has the digest of its UTF-8 bytes. */
  readonly argumentsJson: string | Uint8Array;
}

/** Options of {@link checkWrit}. */
export interface CheckWritOptions {
  /**
   * Whether to accept an expired writ. Set it for the repeat of a recorded call: the recorded result is returned even
   * after the writ has expired (TG-1).
   */
  readonly allowExpired?: boolean;
}

/**
 * Checks that a writ authorizes exactly this call (TG-1): signature, kind, issuer, audience, expiry,
 * tenant, run, agent, call, tool and the digest of the argument bytes. The digest of the tool's
 * definition must be compared by the caller: `claims.definitionDigest`.
 * @returns the writ: `claims`, and its `id` for the receipt
 * @throws PermissionDeniedError WRIT_INVALID, WRIT_EXPIRED, WRIT_MISMATCH (`metadata.field`)
 * @throws UnavailableError KEYS_UNAVAILABLE when the supervisor's keys are unavailable (SYS-4)
 */
export async function checkWrit(
  verifier: Verifier,
  token: string,
  { call, tool, argumentsJson }: OrderedCall,
  { allowExpired = false }: CheckWritOptions = {},
): Promise<VerifiedToken<'writ'>> {
  const writ = await readWrit(verifier, token, allowExpired);
  const { claims } = writ;
  const pairs: readonly (readonly [field: string, ordered: string | undefined, wanted: string])[] =
    [
      ['tenant', claims.tenant, call.tenant],
      ['run_id', claims.runId, call.runId],
      ['agent_instance', claims.agent?.instance, call.instance],
      ['call_id', claims.callId, call.callId],
      ['tool', claims.tool, tool],
      ['arguments_json', claims.argsSha256, sha256Hex(argumentsJson)],
    ];
  const differs = pairs.find(([, ordered, wanted]) => ordered !== wanted);
  if (differs === undefined) return writ;
  const [field] = differs;
  throw new PermissionDeniedError(
    'WRIT_MISMATCH',
    `The writ authorizes another call: its ${field} differs from the request.`,
    { field, writ_id: writ.id },
  );
}

async function readWrit(
  verifier: Verifier,
  token: string,
  allowExpired: boolean,
): Promise<VerifiedToken<'writ'>> {
  try {
    return await verifier.verify('writ', token, {
      issuer: 'supervisor',
      audience: 'tool-gateway',
      allowExpired,
    });
  } catch (error) {
    if (!isWritError(error) || error.kind !== 'unauthenticated') throw error;
    const reason = error.reason === 'TOKEN_EXPIRED' ? 'WRIT_EXPIRED' : 'WRIT_INVALID';
    throw new PermissionDeniedError(reason, error.message, error.metadata, { cause: error });
  }
}
