import { ManualClock, UnavailableError } from '@writ/kernel';
import { beforeEach, describe, expect, it } from 'vitest';
import { tempDir } from '../test/fixtures.ts';
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
    if (down) throw new UnavailableError('UNAVAILABLE', 'Nobody listens.');
    const find = signerKeys(signer);
    const found = new Map<string, TrustedKey>();
    for (const { keyId } of signer.publicKeys()) {
      const key = await find(keyId);
      if (key !== undefined) found.set(keyId, key);
    }
    return found;
  };
  const current = () => signer.publicKeys()[0]?.keyId ?? '';

  it('are fetched when first needed, once for all who ask together', async () => {
    expect(fetches).toBe(0);
    const found = await Promise.all(Array.from({ length: 20 }, () => keys.find(current())));
    expect(found.every((key) => key !== undefined)).toBe(true);
    await keys.find(current());
    expect(fetches).toBe(1);
  });

  it('are fetched again for a key id met after a rotation', async () => {
    await keys.find(current());
    await signer.rotate();
    clock.advance(1_000);
    expect(await keys.find(current())).toBeDefined();
    expect(fetches).toBe(2);
  });

  it('are not hammered by made-up key ids: one fetch a second, whatever is asked (SYS-4)', async () => {
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

  it('are refused as unavailable while their owner is down, and asked for again after (SYS-4)', async () => {
    down = true;
    await expect(keys.find(current())).rejects.toThrow(
      'The keys of supervisor cannot be had: it did not answer (UNAVAILABLE).',
    );
    down = false;
    await expect(keys.find(current())).rejects.toMatchObject({ kind: 'unavailable' });
    clock.advance(1_000);
    expect(await keys.find(current())).toBeDefined();
  });

  it('are refreshed behind the scenes, so that a revoked key goes, and unused once too old', async () => {
    const old = current();
    await keys.find(old);
    await signer.rotate({ vouchForMs: 0 });
    clock.advance(5 * 60_000);
    expect((await keys.find(old))?.notAfter).toBeUndefined();
    await expect.poll(async () => (await keys.find(old))?.notAfter).toBeDefined();
    down = true;
    clock.advance(59 * 60_000);
    expect(await keys.find(old)).toBeDefined();
    clock.advance(60_000);
    await expect(keys.find(old)).rejects.toMatchObject({ reason: 'KEYS_UNAVAILABLE' });
  });

  it('asks anew when a question joins a fetch that began before it', async () => {
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
