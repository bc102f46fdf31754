import fc from 'fast-check';
import { type CompactJWSHeaderParameters, CompactSign } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  CLAIMS,
  createWorld,
  ISSUED,
  KINDS,
  othersThan,
  stolenKey,
  suiteDir,
  tokenOf,
  type World,
} from '../../test/fixtures.ts';
import { type Trust, trustSigners } from '../keys/trust.ts';
import { KIND_RULES, type TokenKind } from './token-kinds.ts';
import { createVerifier } from './verifier.ts';

type Json = Record<string, unknown>;

describe('verifier', () => {
  const keyDir = suiteDir();
  let world: World;
  beforeAll(async () => {
    world = await createWorld(keyDir);
  });

  const refusal = async (kind: TokenKind, token: string) => {
    try {
      await world.verifier.verify(kind, token, ISSUED[kind]);
      return 'accepted';
    } catch (error) {
      if (error instanceof Error && 'reason' in error) return error.reason;
      throw error;
    }
  };

  /** Signs a changed token with the private key of its issuer, or of `signer`. */
  const forge = async (
    kind: TokenKind,
    change: { header?: Json; payload?: (payload: Json) => Json; signer?: 'agent-worker' },
  ) => {
    const { payload } = decode(await tokenOf(world, kind));
    const { key, kid } = await stolenKey(world.keyDir, change.signer ?? ISSUED[kind].issuer);
    const header = { alg: 'EdDSA', typ: KIND_RULES[kind].typ, kid, ...change.header };
    const changed = change.payload?.(payload) ?? payload;
    return new CompactSign(new TextEncoder().encode(JSON.stringify(changed)))
      .setProtectedHeader(withoutUndefined(header) as CompactJWSHeaderParameters)
      .sign(key, { crit: { x: true } });
  };

  describe.each(KINDS)('%s', (kind) => {
    it('returns the signed claims (TG-1)', async () => {
      const { issuer, audience } = ISSUED[kind];
      const signed = await world.signers[issuer].sign(kind, {
        audience,
        claims: CLAIMS[kind],
        ttlMs: 60_000,
        id: 'tok_7',
      });
      const verified = await world.verifier.verify(kind, signed.token, { issuer, audience });
      expect(verified.claims).toMatchObject(CLAIMS[kind]);
      expect(verified).toMatchObject({ id: 'tok_7', issuer, expired: false });
      expect(verified.expireTime).toEqual(signed.expireTime);
      expect(Object.isFrozen(verified.claims)).toBe(true);
    });

    it('is rejected with any one field changed under its signature (TG-1)', async () => {
      const token = await tokenOf(world, kind);
      const { header, payload, signature } = decode(token);
      const changed = [
        ...mutations(header).map((h) => [h, payload] as const),
        ...mutations(payload).map((p) => [header, p] as const),
      ];
      expect(changed.length).toBeGreaterThan(15);
      for (const [h, p] of changed)
        expect(await refusal(kind, `${encode(h)}.${encode(p)}.${signature}`)).toBe('TOKEN_INVALID');
    });

    it('is rejected with any byte of its signature flipped', async () => {
      const [header, payload, signature = ''] = (await tokenOf(world, kind)).split('.');
      const bytes = Buffer.from(signature, 'base64url');
      for (const at of bytes.keys()) {
        const flipped = Buffer.from(bytes);
        flipped.writeUInt8((bytes[at] ?? 0) ^ 1, at);
        const token = `${header}.${payload}.${flipped.toString('base64url')}`;
        expect(await refusal(kind, token)).toBe('TOKEN_INVALID');
      }
    });

    it('is rejected when its issuer signed it with an invalid claim', async () => {
      const { issuer, audience } = ISSUED[kind];
      const now = world.clock.now().getTime() / 1000;
      const inner = (change: Json) => (payload: Json) => ({
        ...payload,
        [kind]: { ...(payload[kind] as Json), ...change },
      });
      const payloads: readonly ((payload: Json) => Json)[] = [
        ...othersThan(issuer).map((iss) => (payload: Json) => ({ ...payload, iss })),
        ...['', 'unknown-key', undefined, [issuer]].map((iss) => (p: Json) => ({ ...p, iss })),
        ...['', 'unknown', [audience], [audience, 'x'], undefined].map((aud) => (p: Json) => ({
          ...p,
          aud,
        })),
        ...['', 'other', undefined].map((sub) => (p: Json) => ({ ...p, sub })),
        ...['', 7, undefined].map((jti) => (p: Json) => ({ ...p, jti })),
        ...[undefined, null, '9999999999', 1e300].map((exp) => (p: Json) => ({ ...p, exp })),
        ...[undefined, 'now', now + 61].map((iat) => (p: Json) => ({ ...p, iat })),
        ...['soon', null, now + 61].map((nbf) => (p: Json) => ({ ...p, nbf })),
        ...[undefined, null, 'text', [], {}].map((claim) => (p: Json) => ({ ...p, [kind]: claim })),
        inner({ a_later_restriction: true }),
        inner({ tenant: 'Not An Id', name: 'unknown' }),
        (payload) => ({ ...payload, scope: 'everything' }),
        (payload) =>
          Object.fromEntries(
            Object.entries(payload).map(([k, v]) => [k === kind ? 'other' : k, v]),
          ),
      ];
      expect(await refusal(kind, await forge(kind, {})), 'valid').toBe('accepted');
      for (const payload of payloads)
        expect(await refusal(kind, await forge(kind, { payload })), payload.toString()).toBe(
          'TOKEN_INVALID',
        );
    });

    it('is rejected when its issuer signed it with an invalid header', async () => {
      const headers: readonly Json[] = [
        { typ: undefined },
        { typ: 'JWT' },
        { typ: KIND_RULES[kind].typ.toUpperCase() },
        ...KINDS.filter((other) => other !== kind).map((other) => ({ typ: KIND_RULES[other].typ })),
        { kid: undefined },
        { kid: '' },
        { kid: 'unknown-key' },
        { kid: (await stolenKey(world.keyDir, 'agent-worker')).kid },
        { alg: 'Ed25519' },
        { crit: ['x'], x: 1 },
        { jwk: { kty: 'OKP' } },
        { cty: 'JWT' },
      ];
      for (const header of headers)
        expect(await refusal(kind, await forge(kind, { header })), JSON.stringify(header)).toBe(
          'TOKEN_INVALID',
        );
    });

    it('is rejected unsigned, or signed with a public key as a shared secret', async () => {
      const { payload } = decode(await tokenOf(world, kind));
      const { typ } = KIND_RULES[kind];
      const { kid } = await stolenKey(world.keyDir, ISSUED[kind].issuer);
      expect(await refusal(kind, `${encode({ alg: 'none', typ, kid })}.${encode(payload)}.`)).toBe(
        'TOKEN_INVALID',
      );
      const secret = Buffer.from(
        world.signers[ISSUED[kind].issuer].publicKeys()[0]?.jwk.x ?? '',
        'base64url',
      );
      const symmetric = await new CompactSign(new TextEncoder().encode(JSON.stringify(payload)))
        .setProtectedHeader({ alg: 'HS256', typ, kid })
        .sign(secret);
      expect(await refusal(kind, symmetric)).toBe('TOKEN_INVALID');
    });

    it('is rejected when another service signed it in the issuer’s name (SYS-6)', async () => {
      const { kid } = await stolenKey(world.keyDir, ISSUED[kind].issuer);
      const signer = 'agent-worker';
      expect(await refusal(kind, await forge(kind, { signer }))).toBe('TOKEN_INVALID');
      expect(await refusal(kind, await forge(kind, { signer, header: { kid } }))).toBe(
        'TOKEN_INVALID',
      );
    });

    it('is rejected as another kind of token, for another audience and from another issuer', async () => {
      const token = await tokenOf(world, kind);
      for (const other of KINDS.filter((name) => name !== kind))
        expect(await refusal(other, token)).toBe('TOKEN_INVALID');
      await world.verifier.verify(kind, token, ISSUED[kind]);
      const verify = (change: { issuer?: 'agent-worker'; audience?: string }) =>
        world.verifier.verify(kind, token, { ...ISSUED[kind], ...change });
      await expect(verify({ audience: 'spawn-budget' })).rejects.toThrow('audience is not');
      await expect(verify({ issuer: 'agent-worker' })).rejects.toThrow('may not issue it');
    });

    it('is rejected in any other encoding of the same bytes', async () => {
      const token = await tokenOf(world, kind);
      // The last character of a 64-byte signature has four unused bits.
      const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
      const last = alphabet.indexOf(token.slice(-1));
      const twin = token.slice(0, -1) + alphabet.charAt(last ^ 1);
      for (const other of [twin, `${token}=`, `${token}.`, ` ${token}`, token.replace('.', '..')])
        expect(await refusal(kind, other)).toBe('TOKEN_INVALID');
    });
  });

  it('rejects a token with any characters changed', async () => {
    const tokens = await Promise.all(
      KINDS.map(async (kind) => [kind, await tokenOf(world, kind)] as const),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...tokens),
        fc.nat(),
        fc.string({ minLength: 0, maxLength: 3 }),
        fc.nat(3),
        async ([kind, token], where, text, cut) => {
          const at = where % token.length;
          const changed = token.slice(0, at) + text + token.slice(at + cut);
          fc.pre(changed !== token);
          expect(await refusal(kind, changed)).toBe('TOKEN_INVALID');
        },
      ),
      { numRuns: 300 },
    );
  });

  it('tolerates the clock leeway after expiry, but none for writs and slot grants (BD-3, SB-4, TG-1)', async () => {
    for (const kind of KINDS) {
      const later = await createWorld();
      const token = await tokenOf(later, kind);
      const verify = () => later.verifier.verify(kind, token, ISSUED[kind]);
      later.clock.step(59_999);
      await verify();
      later.clock.step(1);
      if (kind !== 'writ' && kind !== 'slot_grant') {
        later.clock.step(59_999);
        await verify();
        later.clock.step(1);
      }
      await expect(verify()).rejects.toMatchObject({
        reason: 'TOKEN_EXPIRED',
        metadata: { token: kind },
      });
      const allowed = await later.verifier.verify(kind, token, {
        ...ISSUED[kind],
        allowExpired: true,
      });
      expect(allowed.expired).toBe(true);
    }
  });

  it('accepts a token that was issued in the future by at most the leeway (BD-3)', async () => {
    for (const kind of KINDS) {
      const later = await createWorld();
      const token = await tokenOf(later, kind);
      const verify = () => later.verifier.verify(kind, token, ISSUED[kind]);
      later.clock.step(-60_000);
      await verify();
      later.clock.step(-1);
      await expect(verify()).rejects.toMatchObject({
        reason: 'TOKEN_INVALID',
        metadata: { token: kind, check: 'iat' },
      });
    }
  });

  it('accepts a token that was issued in the future if allowEarly is set (BD-3)', async () => {
    for (const kind of KINDS) {
      const later = await createWorld();
      const token = await tokenOf(later, kind);
      later.clock.step(-3_600_000);
      await later.verifier.verify(kind, token, { ...ISSUED[kind], allowEarly: true });
    }
  });

  it('uses the configured clock leeway (BD-3)', async () => {
    const strict = await createWorld();
    const { clock, signers } = strict;
    const trust = trustSigners(...Object.values(signers));
    const verifier = createVerifier({ trust, clock, leewayMs: 0 });
    const token = await tokenOf(strict, 'service');
    await verifier.verify('service', token, ISSUED.service);
    clock.step(-1);
    await expect(verifier.verify('service', token, ISSUED.service)).rejects.toMatchObject({
      metadata: { check: 'iat' },
    });
  });

  const counted = () => {
    const trust = trustSigners(...Object.values(world.signers));
    const fetchedFrom: string[] = [];
    const counting: Trust = {
      ...trust,
      key(issuer, keyId) {
        fetchedFrom.push(issuer);
        return trust.key(issuer, keyId);
      },
    };
    return { fetchedFrom, verifier: createVerifier({ trust: counting, clock: world.clock }) };
  };

  it('verifies the signature of a repeated token only once', async () => {
    const { fetchedFrom, verifier } = counted();
    const token = await tokenOf(world, 'agent');
    const first = await verifier.verify('agent', token, ISSUED.agent);
    const second = await verifier.verify('agent', token, ISSUED.agent);
    expect(fetchedFrom).toEqual(['supervisor']);
    expect(second.claims).toBe(first.claims);
  });

  it('verifies a repeated token again after five minutes, to detect a revoked key', async () => {
    const later = await createWorld();
    const { token } = await later.signers.supervisor.sign('agent', {
      audience: 'execution-meter',
      claims: CLAIMS.agent,
      ttlMs: 60 * 60_000,
    });
    await later.verifier.verify('agent', token, ISSUED.agent);
    await later.signers.supervisor.rotate({ oldKeyValidForMs: 0 });
    later.clock.advance(5 * 60_000 - 1);
    await later.verifier.verify('agent', token, ISSUED.agent);
    later.clock.advance(1);
    await expect(later.verifier.verify('agent', token, ISSUED.agent)).rejects.toThrow(
      'has retired its key',
    );
  });

  it('fetches keys only from permitted issuers', async () => {
    const { fetchedFrom, verifier } = counted();
    const options = { issuer: 'tool-gateway', audience: 'execution-meter' } as const;
    const token = await tokenOf(world, 'service');
    await expect(verifier.verify('service', token, options)).rejects.toThrow('may not issue it');
    expect(fetchedFrom).toEqual([]);
  });

  it('rejects well-formed claims with invalid values (SYS-6, SV-6)', async () => {
    const wrong: { readonly [K in TokenKind]: Json } = {
      service: { name: 'unknown' },
      agent: { agent: { name: 'clerk' } },
      slot_grant: { priority: 'PRIORITY_UNSPECIFIED' },
      writ: { executed_from: 'the_worker' },
      receipt: { status: 'CALL_STATUS_UNSPECIFIED' },
      checkpoint: { tenant: 'Not An Id' },
      run_token: { agent: { name: 'clerk' } },
    };
    for (const kind of KINDS) {
      const token = await forge(kind, {
        payload: (payload) => ({
          ...payload,
          ...(kind === 'service' ? { sub: 'unknown' } : {}),
          [kind]: { ...(payload[kind] as Json), ...wrong[kind] },
        }),
      });
      await expect(world.verifier.verify(kind, token, ISSUED[kind])).rejects.toThrow(
        `its ${Object.keys(wrong[kind])[0]} is missing or malformed`,
      );
    }
  });

  it('rejects a service token whose replica is not an id (SYS-6, BD-1)', async () => {
    for (const replica of ['', 'w'.repeat(65), 'w1\u0000', 'Worker 1']) {
      const token = await forge('service', {
        payload: (payload) => ({ ...payload, service: { ...CLAIMS.service, replica } as Json }),
      });
      await expect(world.verifier.verify('service', token, ISSUED.service)).rejects.toThrow(
        'its replica is missing or malformed',
      );
    }
  });

  it('still checks the audience of an expired token with allowExpired', async () => {
    const token = await forge('agent', {
      payload: (payload) => ({ ...payload, exp: 1, aud: 'unknown' }),
    });
    const verified = world.verifier.verify('agent', token, { ...ISSUED.agent, allowExpired: true });
    await expect(verified).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
      metadata: { check: 'aud' },
    });
  });

  it('rejects a kind of token from a service that may not issue it, even if the caller expects that issuer', async () => {
    const worker = world.signers['agent-worker'];
    const { token } = await worker.sign('writ', {
      audience: 'tool-gateway',
      claims: CLAIMS.writ,
      ttlMs: 60_000,
    });
    const verified = world.verifier.verify('writ', token, {
      issuer: 'agent-worker',
      audience: 'tool-gateway',
    });
    await expect(verified).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
      metadata: { check: 'iss' },
    });
  });

  it('throws an unavailable error when the keys of the issuer are unavailable (SYS-4)', async () => {
    const verifier = createVerifier({ trust: trustSigners(), clock: world.clock });
    const token = await tokenOf(world, 'agent');
    await expect(verifier.verify('agent', token, ISSUED.agent)).rejects.toMatchObject({
      kind: 'unavailable',
      reason: 'KEYS_UNAVAILABLE',
    });
  });

  it('neither accepts nor signs a token over its maximum length', async () => {
    const tools = Array.from({ length: 1_000 }, (_, at) => `tool_${at}`);
    const forged = await forge('agent', {
      payload: (payload) => ({ ...payload, agent: { ...(payload.agent as Json), tools } }),
    });
    await expect(world.verifier.verify('agent', forged, ISSUED.agent)).rejects.toMatchObject({
      metadata: { check: 'size' },
    });
    const signed = world.signers.supervisor.sign('agent', {
      audience: 'tool-gateway',
      claims: { ...CLAIMS.agent, tools },
      ttlMs: 60_000,
    });
    await expect(signed).rejects.toMatchObject({
      reason: 'TOKEN_TOO_LARGE',
      metadata: { limit: '8192' },
    });
  });
});

function decode(token: string) {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const parse = (part: string): Json => JSON.parse(Buffer.from(part, 'base64url').toString());
  return { header: parse(header), payload: parse(payload), signature };
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function withoutUndefined(object: Json): Json {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** Every object that differs from `value` in exactly one leaf, changed or removed. */
function mutations(value: Json): Json[] {
  return Object.entries(value).flatMap(([key, member]) => {
    const { [key]: _, ...without } = value;
    return [without, ...changes(member).map((changed) => ({ ...value, [key]: changed }))];
  });
}

function changes(value: unknown): unknown[] {
  if (typeof value === 'string') return [`${value}x`];
  if (typeof value === 'number') return [value + 1];
  if (Array.isArray(value)) return [[...value, 'x'], value.slice(1)];
  return mutations(value as Json);
}
