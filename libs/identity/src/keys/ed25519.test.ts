import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSigned, privateKey, publicKey, signCompact } from './ed25519.ts';

function newKey() {
  const { x = '', d = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  return { signing: privateKey(x, d), verifying: publicKey(x) };
}

describe('a signed token', () => {
  const own = newKey();
  const other = newKey();
  const token = signCompact({ alg: 'EdDSA' }, { run: 'r-1' }, own.signing);

  it('is valid only under its own key, in every repeated verification (CO-1)', () => {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect(isSigned(token, own.verifying)).toBe(true);
      expect(isSigned(token, other.verifying)).toBe(false);
    }
  });

  it('is invalid after any change, even when the original token is cached (TG-1)', () => {
    const changed = fc.tuple(fc.nat(token.length - 1), fc.constantFrom(...'AQgw_-x0'));
    fc.assert(
      fc.property(changed, ([at, character]) => {
        const forged = token.slice(0, at) + character + token.slice(at + 1);
        fc.pre(forged !== token && sameBytes(forged, token) === false);
        expect(isSigned(forged, own.verifying)).toBe(false);
      }),
    );
  });

  it('is valid when it was signed with a newly created key object', () => {
    const fresh = newKey();
    const signed = signCompact({ alg: 'EdDSA' }, { run: 'r-2' }, fresh.signing);
    expect(isSigned(signed, fresh.verifying)).toBe(true);
  });
});

/**
 * Whether two tokens have the same content and signature bytes. Their texts may differ, because the last base64
 * character has unused bits.
 */
function sameBytes(a: string, b: string): boolean {
  const [textA, textB] = [a, b].map((token) => token.slice(0, token.lastIndexOf('.')));
  const [bytesA, bytesB] = [a, b].map((token) =>
    Buffer.from(token.slice(token.lastIndexOf('.') + 1), 'base64url').toString('hex'),
  );
  return textA === textB && bytesA === bytesB;
}
