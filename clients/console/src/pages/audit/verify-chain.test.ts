import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { linkHash } from '@writ/audit';
import { CHAIN_START, formatLine } from '@writ/audit/portable';
import { formatPublicKeys, mintCheckpoint, openSigner } from '@writ/identity';
import { canonicalJson, ManualClock } from '@writ/kernel';
import { expect, it, onTestFinished } from 'vitest';
import { recordNumber, verifyChain } from './verify-chain.ts';

/** Returns an export of a chain of five records, and the public keys. */
async function exported() {
  const keyDir = mkdtempSync(join(tmpdir(), 'writ-console-keys-'));
  onTestFinished(() => rmSync(keyDir, { recursive: true, force: true }));
  const clock = new ManualClock(new Date('2026-01-01T12:00:00Z'));
  const signer = await openSigner({ service: 'supervisor', keyDir, clock });
  const lines: string[] = [];
  let hash = CHAIN_START;
  for (let sequence = 1; sequence <= 5; sequence += 1) {
    const record = { tenant: 'acme', kind: 'decision' };
    const previousHash = hash;
    hash = linkHash(previousHash, canonicalJson(record));
    lines.push(formatLine({ type: 'record', sequence, previousHash, hash, record }));
  }
  const claims = { tenant: 'acme', count: 5n, headHash: hash, previousCount: 0n };
  const { token } = await mintCheckpoint(signer, { ...claims, closesExport: true });
  lines.push(formatLine({ type: 'head', signed: token }));
  return { lines, jwks: formatPublicKeys(signer.publicKeys()) };
}

it('accepts a partial export only with the number of the record that it follows (SV-8, PE-2)', async () => {
  const { lines, jwks } = await exported();
  expect(await verifyChain(lines, jwks)).toMatchObject({ holds: true });
  const part = lines.slice(2);
  expect(await verifyChain(part, jwks, 2)).toEqual({
    holds: true,
    sentence:
      'The chain of tenant acme is valid: 3 records, 3 to 5, 0 checkpoints, head signed at 2026-01-01T12:00:00.000Z.',
  });
  for (const after of [0, 1, 3]) {
    expect(await verifyChain(part, jwks, after)).toMatchObject({ holds: false });
  }
});

it.each([
  ['', 0],
  [' 5000 ', 5_000],
  ['-1', undefined],
  ['1.5', undefined],
  ['1e3', undefined],
  ['9007199254740993', undefined],
])('reads the record number %j as %j (SV-8, PE-2)', (text, number) => {
  expect(recordNumber(text)).toBe(number);
});
