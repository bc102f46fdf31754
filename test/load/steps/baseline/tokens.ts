import { timestampNow } from '@bufbuild/protobuf/wkt';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { mintReceipt, mintWrit } from '@writ/identity';
import { newId, sha256Hex } from '@writ/kernel';
import type { BaselineSigners, Counter } from './counter.ts';

/** The writ and the receipt of a step, as long as real ones and signed once. */
export interface Tokens {
  readonly writ: string;
  readonly receipt: string;
}

/** Arbitrary, because the tokens are not verified. */
const TTL_MS = 60_000;
/** The tool that every step calls. */
export const TOOL = 'count';
/** Used for every digest of a step, because all digests have the same length and none is compared. */
export const ANY_DIGEST = sha256Hex('baseline');

/** Signs the tokens for a call of `counter`. */
export async function createTokens(
  { supervisor, gateway }: BaselineSigners,
  { tenant, runId, sessionId, agent }: Counter,
): Promise<Tokens> {
  const call = { tenant, runId, agent, callId: 'op-3', tool: TOOL };
  const callClaims = { ...call, definitionDigest: ANY_DIGEST, argsSha256: ANY_DIGEST };
  const writClaims = {
    ...callClaims,
    decisionId: newId('dec'),
    policyVersion: ANY_DIGEST,
    executedFrom: 'original',
    maxToolCalls: 1_000_000,
    allowedTools: [TOOL],
    resultFields: ['error'],
    sessionId,
  };
  const receiptClaims = {
    ...callClaims,
    writId: newId('writ'),
    status: CallStatus.OK,
    resultSha256: ANY_DIGEST,
    resultFields: {},
    registryVersion: ANY_DIGEST,
    startTime: timestampNow(),
    endTime: timestampNow(),
    revision: 1,
    step: 1,
  };
  const [writ, receipt] = await Promise.all([
    mintWrit(supervisor, writClaims, TTL_MS),
    mintReceipt(gateway, receiptClaims),
  ]);
  return { writ: writ.token, receipt: receipt.token };
}
