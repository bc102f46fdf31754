import fs, { rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { ManualClock } from '@writ/kernel';
import { SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { tempDir } from '../../../test/fixtures.ts';
import { Issuer, unsigned } from '../../../test/issuer.ts';
import { createOidc, type Oidc } from './oidc.ts';
import { OIDC_DEFAULTS, type OidcSettings } from './oidc-settings.ts';

const CLAIMS = { aud: 'writ', sub: 'ada', tenant: 'acme', roles: ['caller', 'root'] };
const ADA = { subject: 'ada', tenant: 'acme', roles: ['caller'] };

describe('tokens of an issuer', () => {
  const clock = new ManualClock(new Date());
  const unavailable = vi.fn<(error: unknown) => void>();
  let issuer: Issuer;
  let oidc: Oidc;

  const settings = (changes: Partial<OidcSettings> = {}): OidcSettings => ({
    ...OIDC_DEFAULTS,
    issuer: issuer.name,
    audience: 'writ',
    jwks: { url: issuer.url },
    ...changes,
  });

  beforeEach(async () => {
    issuer = await Issuer.start();
    unavailable.mockClear();
    oidc = createOidc(settings(), { clock, onUnavailable: unavailable });
  });
  afterEach(() => issuer.close());

  const rejectedAs = (check: string) => ({
    kind: 'unauthenticated',
    reason: 'TOKEN_INVALID',
    metadata: { token: 'oidc', check },
  });

  it('name a person by the configured claims; unknown roles are ignored (SYS-6)', async () => {
    expect(await oidc.verify(await issuer.sign(CLAIMS))).toEqual(ADA);
    const named = createOidc(
      settings({
        subjectClaim: 'email',
        tenantClaim: 'https://writ.example/tenant',
        rolesClaim: 'realm_access.roles',
      }),
      { clock },
    );
    const claims = {
      aud: ['other', 'writ'],
      email: 'ada@acme.example',
      'https://writ.example/tenant': 'acme',
      realm_access: { roles: 'approver admin approver unknown' },
    };
    expect(await named.verify(await issuer.sign(claims))).toEqual({
      subject: 'ada@acme.example',
      tenant: 'acme',
      roles: ['approver', 'admin'],
    });
  });

  it.each([
    ['another issuer', { iss: 'https://other.example' }, 'iss'],
    ['another audience', { aud: 'other' }, 'aud'],
    ['no audience', { aud: undefined }, 'aud'],
    ['a future nbf', { nbf: Math.floor(Date.now() / 1_000) + 600 }, 'nbf'],
    ['no expiry', { exp: undefined }, 'exp'],
    ['no subject', { sub: undefined }, 'sub'],
    ['an empty subject', { sub: '' }, 'sub'],
    ['no tenant', { tenant: undefined }, 'tenant'],
    ['an invalid tenant id', { tenant: 'Acme/*' }, 'tenant'],
    ['several tenants', { tenant: ['acme', 'rivals'] }, 'tenant'],
  ])('are rejected with %s (SYS-4, SYS-6)', async (_, changes, check) => {
    const token = await issuer.sign({ ...CLAIMS, ...changes });
    await expect(oidc.verify(token)).rejects.toMatchObject(rejectedAs(check));
  });

  it('are rejected when they have expired (SYS-4)', async () => {
    const token = await issuer.sign(CLAIMS, { expiresInS: -60 });
    await expect(oidc.verify(token)).rejects.toMatchObject({ reason: 'TOKEN_EXPIRED' });
  });

  it('are rejected if unsigned, modified, or signed with a shared secret or another key (SYS-4)', async () => {
    const now = Math.floor(Date.now() / 1_000);
    const claims = { ...CLAIMS, iss: issuer.name, iat: now, exp: now + 60 };
    const shared = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'key-1' })
      .sign(Buffer.from(issuer.jwks));
    const otherIssuer = await Issuer.start();
    const fromOther = await otherIssuer.sign(CLAIMS);
    await otherIssuer.close();
    const [header, , signature] = (await issuer.sign(CLAIMS)).split('.');
    const payload = Buffer.from(JSON.stringify({ ...claims, tenant: 'rivals' }));
    const changed = `${header}.${payload.toString('base64url')}.${signature}`;
    for (const token of [unsigned(claims), shared, fromOther, changed, 'garbage', 'a.b.c', '']) {
      await expect(oidc.verify(token)).rejects.toMatchObject(rejectedAs('signature'));
    }
  });

  it('are rejected if their algorithm is not configured, even if the issuer signed them (SYS-4)', async () => {
    await issuer.addKey('key-2', 'EdDSA');
    const token = await issuer.sign(CLAIMS, { kid: 'key-2' });
    expect(await oidc.verify(token)).toEqual(ADA);
    const strict = createOidc(settings({ algorithms: ['ES256'] }), { clock });
    await expect(strict.verify(token)).rejects.toMatchObject(rejectedAs('signature'));
  });

  it('cause one key fetch for any number of tokens and unknown key ids (SYS-4)', async () => {
    for (let call = 0; call < 5; call += 1) await oidc.verify(await issuer.sign(CLAIMS));
    const otherIssuer = await Issuer.start();
    await otherIssuer.addKey('key-9', 'ES256');
    const unknown = await otherIssuer.sign(CLAIMS, { kid: 'key-9' });
    await otherIssuer.close();
    for (let call = 0; call < 5; call += 1) {
      await expect(oidc.verify(unknown)).rejects.toMatchObject(rejectedAs('signature'));
    }
    expect(issuer.requests).toBe(1);
  });

  it('with unknown key ids cause one fetch a second while the issuer is down, and known keys stay valid (SYS-4)', async () => {
    const token = await issuer.sign(CLAIMS);
    await oidc.verify(token);
    issuer.isDown = true;
    const unknown = await issuer.sign(CLAIMS);
    const now = Date.now();
    vi.spyOn(Date, 'now').mockReturnValue(now + 60_000);
    const [header = '', ...rest] = unknown.split('.');
    const decoded = JSON.parse(Buffer.from(header, 'base64url').toString());
    for (let call = 0; call < 5; call += 1) {
      const other = Buffer.from(JSON.stringify({ ...decoded, kid: `key-${call + 10}` }));
      await expect(
        oidc.verify([other.toString('base64url'), ...rest].join('.')),
      ).rejects.toMatchObject({ reason: 'ISSUER_UNAVAILABLE' });
    }
    expect(issuer.requests).toBe(2);
    expect(await oidc.verify(token)).toEqual(ADA);
  });

  it.each(['isDown', 'isGarbled'] as const)(
    'are rejected with one key fetch while the issuer is faulty (%s), and accepted afterwards (SYS-4)',
    async (fault) => {
      issuer[fault] = true;
      const token = await issuer.sign(CLAIMS);
      for (let call = 0; call < 3; call += 1) {
        await expect(oidc.verify(token)).rejects.toMatchObject({
          kind: 'unavailable',
          reason: 'ISSUER_UNAVAILABLE',
        });
      }
      expect(issuer.requests).toBe(1);
      clock.advance(1_001);
      await expect(oidc.verify(token)).rejects.toThrow('retry later');
      // The cause is reported once, for the log of the supervisor.
      expect(unavailable.mock.calls).toEqual([[expect.any(Error)]]);
      issuer[fault] = false;
      clock.advance(1_001);
      expect(await oidc.verify(token)).toEqual(ADA);
      expect(unavailable).toHaveBeenCalledTimes(1);
    },
  );

  it('are verified with the current key file, and rejected once it is missing, even if the clock was set back (SYS-4, BD-3)', async () => {
    const file = join(tempDir(), 'jwks.json');
    writeFileSync(file, issuer.jwks);
    const local = createOidc(settings({ jwks: { file } }), { clock, onUnavailable: unavailable });
    expect(await local.verify(await issuer.sign(CLAIMS))).toEqual(ADA);
    await issuer.addKey('key-2', 'ES256');
    writeFileSync(file, issuer.jwks);
    clock.advance(1_000);
    expect(await local.verify(await issuer.sign(CLAIMS, { kid: 'key-2' }))).toEqual(ADA);
    rmSync(file);
    clock.advance(1_000);
    clock.step(-1_000);
    await expect(local.verify(await issuer.sign(CLAIMS))).rejects.toMatchObject({
      reason: 'ISSUER_UNAVAILABLE',
    });
    expect(unavailable).toHaveBeenCalledWith(expect.objectContaining({ code: 'ENOENT' }));
  });

  it('are accepted when a key file that could not be read is readable again (SYS-4)', async () => {
    const file = join(tempDir(), 'jwks.json');
    writeFileSync(file, issuer.jwks);
    const local = createOidc(settings({ jwks: { file } }), { clock });
    // A repair of the permissions does not change the stamp of the file.
    vi.spyOn(fs, 'readFileSync').mockImplementationOnce(() => {
      throw Object.assign(new Error('open'), { code: 'EACCES' });
    });
    syncBuiltinESMExports();
    onTestFinished(() => {
      vi.restoreAllMocks();
      syncBuiltinESMExports();
    });
    const token = await issuer.sign(CLAIMS);
    await expect(local.verify(token)).rejects.toMatchObject({ reason: 'ISSUER_UNAVAILABLE' });
    clock.advance(1_000);
    expect(await local.verify(token)).toEqual(ADA);
  });
});
