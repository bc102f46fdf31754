import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { formatLine, type ReadHead, verifyExport } from '@writ/audit';
import { createVerifier, readCheckpoint, trustPublicKeys } from '@writ/identity';
import { type JsonObject, systemClock } from '@writ/kernel';
import type { DistributedPlatform } from '@writ/testing/distributed';
import type { Invariant } from './invariant.ts';

export const auditChainIntact: Invariant = {
  holds: 'every audit record is linked in one unbroken, signed chain (SV-8)',
  violations: async ({ platform }) => {
    const unlinked = await platform.rows(
      'supervisor',
      'select position, kind, run_id from audit where hash is null',
    );
    const verdict = await verifyExport(
      await exportLines(platform),
      await headReader(platform.dataDir),
      { after: 0 },
    );
    const [all] = await platform.rows('supervisor', 'select count(*) as records from audit');
    return [
      ...unlinked.map((row) => `not linked: ${JSON.stringify(row)}`),
      ...(verdict.holds ? [] : [verdict.sentence]),
      ...(Number(all?.records) > 0 ? [] : ['the audit log is empty']),
    ];
  },
};

async function exportLines({ client }: DistributedPlatform): Promise<string[]> {
  const lines: string[] = [];
  for await (const { entry } of client.audit.exportAudit({})) {
    if (entry.case === undefined) throw new Error('The export contains an empty entry.');
    if (entry.case === 'record') {
      const { sequence, previousHash, hash, canonicalJson } = entry.value;
      const record = JSON.parse(canonicalJson) as JsonObject;
      lines.push(
        formatLine({ type: 'record', sequence: Number(sequence), previousHash, hash, record }),
      );
    } else {
      lines.push(formatLine({ type: entry.case, signed: entry.value.signed }));
    }
  }
  return lines;
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
