import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManualClock } from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mintCheckpoint, readCheckpoint } from '../tokens/checkpoint.ts';
import { createVerifier } from '../tokens/verifier.ts';
import { formatPublicKeys, trustPublicKeys } from './public-keys.ts';
import { openSigner, type Signer } from './signer.ts';

describe('trustPublicKeys', () => {
  const clock = new ManualClock(new Date('2026-11-21T12:00:00Z'));
  const claims = { tenant: 'acme', count: 7n, headHash: 'a'.repeat(64), previousCount: 3n };
  let keyDir: string;
  let signer: Signer;

  beforeAll(async () => {
    keyDir = await mkdtemp(join(tmpdir(), 'writ-keys-'));
    signer = await openSigner({ service: 'supervisor', keyDir, clock });
  });
  afterAll(() => rm(keyDir, { recursive: true, force: true }));

  const read = async (jwks: string, token: string) => {
    const trust = await trustPublicKeys('supervisor', jwks);
    return await readCheckpoint(createVerifier({ trust, clock }), token);
  };

  it('verifies tokens signed before and after a rotation with public keys alone (SV-8)', async () => {
    const before = await mintCheckpoint(signer, claims);
    await signer.rotate({ oldKeyValidForMs: 1_000 });
    const signedAt = clock.now();
    clock.advance(60_000);
    const after = await mintCheckpoint(signer, { ...claims, count: 9n, closesExport: true });
    const jwks = formatPublicKeys(signer.publicKeys());
    expect(jwks).not.toContain('"d"');
    expect(await read(jwks, before.token)).toMatchObject({ claims, issueTime: signedAt });
    expect((await read(jwks, after.token)).claims).toMatchObject({ closesExport: true });
    const own = await readFile(join(keyDir, 'supervisor.jwks.json'), 'utf8');
    expect((await read(own, after.token)).claims.count).toBe(9n);
  });

  it('rejects a signature by an unlisted key (SV-8)', async () => {
    const other = await mkdtemp(join(tmpdir(), 'writ-keys-'));
    try {
      const otherSigner = await openSigner({ service: 'supervisor', keyDir: other, clock });
      const { token } = await mintCheckpoint(otherSigner, claims);
      const jwks = formatPublicKeys(signer.publicKeys());
      await expect(read(jwks, token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' });
    } finally {
      await rm(other, { recursive: true, force: true });
    }
  });

  it.each([
    ['text that is not JSON', 'key', 'they are not JSON'],
    ['an empty key set', '{"keys":[]}', 'at least one key'],
    ['a key with another curve', '{"keys":[{"kty":"EC","crv":"P-256"}]}', 'not an Ed25519 key'],
    [
      'a key of the wrong length',
      '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA"}]}',
      'not 32 bytes',
    ],
    [
      'a kid that is not the thumbprint',
      `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"${'A'.repeat(43)}","kid":"k"}]}`,
      'not its thumbprint',
    ],
  ])('rejects %s and names the problem (SYS-3)', async (_what, jwks, sentence) => {
    await expect(trustPublicKeys('supervisor', jwks)).rejects.toMatchObject({
      reason: 'INVALID_PUBLIC_KEYS',
      message: expect.stringContaining(sentence),
    });
  });
});
