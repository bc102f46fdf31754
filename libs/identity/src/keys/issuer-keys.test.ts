import { ManualClock, UnavailableError } from '@writ/kernel';
import { beforeEach, describe, expect, it } from 'vitest';
import { tempDir } from '../../test/fixtures.ts';
import { IssuerKeys } from './issuer-keys.ts';
import { openSigner, type Signer } from './signer.ts';
import { signerKeys, type TrustedKey } from './trust.ts';

describe('keys of an issuer', () => {
  const clock = new ManualClock();
  let signer: Signer;
  let fetches: number;
  let down: boolean;
  let keys: IssuerKeys;
  beforeEach(async () => {
    signer = await openSigner({ service: 'supervisor', keyDir: tempDir(), clock });
    fetches = 0;
    down = false;
    keys = new IssuerKeys('supervisor', fetchKeys, clock);
  });

  const fetchKeys = async () => {
    fetches += 1;
    if (down) throw new UnavailableError('UNAVAILABLE', 'The server is not listening.');
    const find = signerKeys(signer);
    const found = new Map<string, TrustedKey>();
    for (const { keyId } of signer.publicKeys()) {
      const key = await find(keyId);
      if (key !== undefined) found.set(keyId, key);
    }
    return found;
  };
  const current = () => signer.publicKeys()[0]?.keyId ?? '';

  it('are fetched on first use, once for concurrent lookups', async () => {
    expect(fetches).toBe(0);
    const found = await Promise.all(Array.from({ length: 20 }, () => keys.find(current())));
    expect(found.every((key) => key !== undefined)).toBe(true);
    await keys.find(current());
    expect(fetches).toBe(1);
  });

  it('are fetched again for the id of the new key after a rotation', async () => {
    await keys.find(current());
    await signer.rotate();
    clock.advance(1_000);
    expect(await keys.find(current())).toBeDefined();
    expect(fetches).toBe(2);
  });

  it('are fetched at most once a second for unknown key ids (SYS-4)', async () => {
    await keys.find(current());
    clock.advance(1_000);
    expect(await keys.find('made-up')).toBeUndefined();
    expect(await keys.find('made-up')).toBeUndefined();
    for (let at = 0; at < 100; at += 1)
      await expect(keys.find(`made-up-${at}`)).rejects.toMatchObject({
        kind: 'unavailable',
        reason: 'KEYS_UNAVAILABLE',
      });
    expect(fetches).toBe(2);
    expect(await keys.find(current())).toBeDefined();
  });

  it('are unavailable while the issuer is down, and fetched again afterwards (SYS-4)', async () => {
    down = true;
    await expect(keys.find(current())).rejects.toThrow(
      'The keys of supervisor are unavailable: it did not respond (UNAVAILABLE).',
    );
    down = false;
    await expect(keys.find(current())).rejects.toMatchObject({ kind: 'unavailable' });
    clock.advance(1_000);
    expect(await keys.find(current())).toBeDefined();
  });

  it('are refreshed in the background, and not used beyond their maximum age', async () => {
    const old = current();
    await keys.find(old);
    await signer.rotate({ oldKeyValidForMs: 0 });
    clock.advance(5 * 60_000);
    expect((await keys.find(old))?.notAfter).toBeUndefined();
    await expect.poll(async () => (await keys.find(old))?.notAfter).toBeDefined();
    down = true;
    clock.advance(59 * 60_000);
    expect(await keys.find(old)).toBeDefined();
    clock.advance(60_000);
    await expect(keys.find(old)).rejects.toMatchObject({ reason: 'KEYS_UNAVAILABLE' });
  });

  it('are fetched again if a lookup joined a fetch that did not return its key', async () => {
    const release: (() => void)[] = [];
    const slow = new IssuerKeys(
      'supervisor',
      async () => {
        const found = await fetchKeys();
        await new Promise<void>((resolve) => release.push(resolve));
        return found;
      },
      clock,
    );
    const first = slow.find(current());
    await expect.poll(() => release.length).toBe(1);
    await signer.rotate();
    const joined = slow.find(current());
    clock.advance(1_000);
    release[0]?.();
    await first;
    await expect.poll(() => release.length).toBe(2);
    release[1]?.();
    expect(await joined).toBeDefined();
  });
});
