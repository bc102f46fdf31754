import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatLine, type ReadHead, type SignedHead, verifyExport } from '@writ/audit';
import {
  AuditService,
  type ExportAuditResponse,
} from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { createVerifier, readCheckpoint, trustPublicKeys } from '@writ/identity';
import { type JsonObject, systemClock } from '@writ/kernel';
import type { PersonName, SupervisorUnderTest } from './supervisor-under-test.ts';

/** The lines of an export, in the format of `writ audit export`. */
export async function exportLines(
  supervisor: SupervisorUnderTest,
  person: PersonName = 'anna',
  afterSequence = 0n,
): Promise<string[]> {
  const stream = supervisor.as(person, AuditService).exportAudit({ afterSequence });
  return (await Array.fromAsync(stream)).map(lineOf);
}

function lineOf({ entry }: ExportAuditResponse): string {
  if (entry.case === undefined) throw new Error('The export contains an empty entry.');
  if (entry.case !== 'record') return formatLine({ type: entry.case, signed: entry.value.signed });
  const { sequence, previousHash, hash, canonicalJson } = entry.value;
  const record = JSON.parse(canonicalJson) as JsonObject;
  return formatLine({ type: 'record', sequence: Number(sequence), previousHash, hash, record });
}

/** Reads signatures with the public keys of the supervisor in a data folder. */
export async function headReader(dataDir: string): Promise<ReadHead> {
  const jwks = await readFile(join(dataDir, 'keys', 'supervisor.jwks.json'), 'utf8');
  const trust = await trustPublicKeys('supervisor', jwks);
  const verifier = createVerifier({ trust, clock: systemClock });
  return async (signed): Promise<SignedHead> => {
    const { claims, issueTime: signedAt } = await readCheckpoint(verifier, signed);
    const { tenant, headHash, closesExport } = claims;
    const [count, previousCount] = [Number(claims.count), Number(claims.previousCount)];
    const checkpointNumber = Number(claims.checkpointNumber);
    return { tenant, count, headHash, previousCount, checkpointNumber, closesExport, signedAt };
  };
}

/** Verifies an export with the public keys of the supervisor in a data folder. */
export async function verifyWith(dataDir: string, lines: readonly string[], after = 0) {
  return await verifyExport(lines, await headReader(dataDir), { after });
}
