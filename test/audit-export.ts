import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatLine, type ReadHead, verifyExport } from '@writ/audit';
import type { WritClient } from '@writ/client';
import { createVerifier, readCheckpoint, trustPublicKeys } from '@writ/identity';
import { type JsonObject, systemClock } from '@writ/kernel';

/** A platform: its client exports the audit log, and the keys in its data folder verify it. */
interface Audited {
  readonly client: Pick<WritClient, 'audit'>;
  readonly dataDir: string;
}

/** Exports the audit log and verifies it as `writ audit verify` does; also returns the records. */
export async function verifyAudit({ client, dataDir }: Audited): Promise<{
  readonly verdict: Awaited<ReturnType<typeof verifyExport>>;
  readonly records: readonly JsonObject[];
}> {
  const lines: string[] = [];
  const records: JsonObject[] = [];
  for await (const { entry } of client.audit.exportAudit({})) {
    if (entry.case === undefined) throw new Error('The export contains an empty entry.');
    if (entry.case === 'record') {
      const { sequence, previousHash, hash, canonicalJson } = entry.value;
      const record = JSON.parse(canonicalJson) as JsonObject;
      records.push(record);
      lines.push(
        formatLine({ type: 'record', sequence: Number(sequence), previousHash, hash, record }),
      );
    } else {
      lines.push(formatLine({ type: entry.case, signed: entry.value.signed }));
    }
  }
  return { verdict: await verifyExport(lines, await headReader(dataDir), { after: 0 }), records };
}

async function headReader(dataDir: string): Promise<ReadHead> {
  const jwks = await readFile(join(dataDir, 'keys', 'supervisor.jwks.json'), 'utf8');
  const trust = await trustPublicKeys('supervisor', jwks);
  const verifier = createVerifier({ trust, clock: systemClock });
  return async (signed) => {
    const { claims, issueTime: signedAt } = await readCheckpoint(verifier, signed);
    const { tenant, headHash, closesExport } = claims;
    const [count, previousCount] = [Number(claims.count), Number(claims.previousCount)];
    const checkpointNumber = Number(claims.checkpointNumber);
    return { tenant, count, headHash, previousCount, checkpointNumber, closesExport, signedAt };
  };
}
