import { describe, expect, it } from 'vitest';
import { createWorld } from '../../test/fixtures.ts';
import { openSigner } from '../keys/signer.ts';
import { assertServesTenant } from './agent-token.ts';
import { serviceTokens } from './service-tokens.ts';

describe('service tokens', () => {
  it('identify the service, its replica and its tenants to one audience (SYS-6)', async () => {
    const { signers, verifier } = await createWorld();
    const token = await serviceTokens(signers['agent-worker'], {
      audience: 'supervisor',
      replica: 'w1',
      tenants: ['acme'],
    })();
    const { claims } = await verifier.verify('service', token, {
      issuer: 'agent-worker',
      audience: 'supervisor',
    });
    expect(claims).toMatchObject({ name: 'agent-worker', replica: 'w1', tenants: ['acme'] });
  });

  it('are cached and renewed at half of their lifetime', async () => {
    const { signers, clock } = await createWorld();
    const token = serviceTokens(signers.supervisor, { audience: 'tool-gateway', replica: 'r1' });
    const [first, same] = await Promise.all([token(), token()]);
    expect(same).toBe(first);
    clock.advance(5 * 60_000 - 1);
    expect(await token()).toBe(first);
    clock.advance(1);
    expect(await token()).not.toBe(first);
  });

  it('are renewed after the clock was set back', async () => {
    const { signers, clock, verifier } = await createWorld();
    const token = serviceTokens(signers.supervisor, { audience: 'tool-gateway', replica: 'r1' });
    await token();
    clock.advance(-60_000);
    const expected = { issuer: 'supervisor', audience: 'tool-gateway' } as const;
    await expect(verifier.verify('service', await token(), expected)).resolves.toBeDefined();
  });

  it('are renewed when the signing key was revoked (SV-6)', async () => {
    const { signers, verifier, clock, keyDir } = await createWorld();
    const { supervisor } = signers;
    const token = serviceTokens(supervisor, { audience: 'tool-gateway', replica: 'r1' });
    const verify = async () =>
      await verifier.verify('service', await token(), {
        issuer: 'supervisor',
        audience: 'tool-gateway',
      });
    const before = await verify();
    const other = await openSigner({ service: 'supervisor', keyDir, clock });
    await other.revoke(other.keyId);
    clock.advance(1_000);
    const after = await verify();
    expect(after.id).not.toBe(before.id);
    expect((await verify()).id).toBe(after.id);
  });

  it('are requested again after a failure', async () => {
    const { signers } = await createWorld();
    let fail = true;
    const signer = {
      ...signers.supervisor,
      clock: signers.supervisor.clock,
      service: signers.supervisor.service,
      sign: async () => {
        if (fail) throw new Error('The disk is full.');
        return { token: 'good', id: 'tok_1', expireTime: new Date() };
      },
      keyId: 'key-1',
      publicKeys: () => [],
      rotate: async () => undefined,
      revoke: async () => false,
      refresh: async () => undefined,
    };
    const token = serviceTokens(signer, { audience: 'tool-gateway', replica: 'r1' });
    await expect(token()).rejects.toThrow('disk');
    fail = false;
    expect(await token()).toBe('good');
  });
});

describe('tenants of a service', () => {
  it('are all tenants if the token lists no tenant, otherwise only the listed tenants (SYS-6)', () => {
    const service = { name: 'agent-worker', replica: 'w1', tenants: ['acme'] };
    assertServesTenant({ service }, 'acme');
    assertServesTenant({ service: { ...service, tenants: [] } }, 'beta');
    expect(() => assertServesTenant({ service }, 'beta')).toThrow(
      'This agent-worker does not serve the tenant beta.',
    );
    expect(() => assertServesTenant({}, 'acme')).toThrow('Only a service');
  });
});
