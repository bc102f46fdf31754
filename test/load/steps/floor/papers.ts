import { timestampNow } from '@bufbuild/protobuf/wkt';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { mintReceipt, mintWrit } from '@writ/identity';
import { newId, sha256Hex } from '@writ/kernel';
import type { Counter, FloorSigners } from './counter.ts';

/** The order and the proof that every step shows: as long as a step's own, and signed once. */
export interface Papers {
  readonly writ: string;
  readonly receipt: string;
}

/** Nobody reads them. */
const TTL_MS = 60_000;
/** The tool that every step calls. */
export const TOOL = 'count';
/** Stands for every digest that a step names: nobody compares them here, and all are of one length. */
export const ANY_DIGEST = sha256Hex('floor');

/** Signs them for a call of `counter`. */
export async function createPapers(
  { supervisor, gateway }: FloorSigners,
  { tenant, runId, sessionId, agent }: Counter,
): Promise<Papers> {
  const call = { tenant, runId, agent, callId: 'op-3', tool: TOOL };
  const of = { ...call, definitionDigest: ANY_DIGEST, argsSha256: ANY_DIGEST };
  const order = {
    ...of,
    decisionId: newId('dec'),
    policyVersion: ANY_DIGEST,
    executedFrom: 'original',
    maxToolCalls: 1_000_000,
    allowedTools: [TOOL],
    resultFields: ['error'],
    sessionId,
  };
  const proof = {
    ...of,
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
    mintWrit(supervisor, order, TTL_MS),
    mintReceipt(gateway, proof),
  ]);
  return { writ: writ.token, receipt: receipt.token };
}
