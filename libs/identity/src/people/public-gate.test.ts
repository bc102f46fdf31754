import type { DescMethod } from '@bufbuild/protobuf';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { ManualClock, UnavailableError } from '@writ/kernel';
import type { Person } from '@writ/rpc';
import { describe, expect, it } from 'vitest';
import { publicGate } from './public-gate.ts';
import { tenantRateLimit } from './tenant-rate.ts';

const method = RunService.method.getRun;
const call = (token: string) => ({ method, header: () => `Bearer ${token}` });
const person = (tenant: string): Person => ({ subject: 'ada', tenant, roles: ['caller'] });
const apiKeys = {
  verify: (key: string) => (key.startsWith('writ_good') ? person(key.slice(10)) : undefined),
};

describe('the public gate', () => {
  it('limits the calls of each tenant separately and does not count unknown callers (SYS-3, SYS-6)', async () => {
    const rateLimit = tenantRateLimit({ perSecond: 1, burst: 1 }, new ManualClock());
    const gate = publicGate({ apiKeys, rateLimit });
    await expect(gate(call('writ_bad'))).rejects.toMatchObject({ reason: 'TOKEN_INVALID' });
    expect(await gate(call('writ_good_acme'))).toEqual({ person: person('acme') });
    await expect(gate(call('writ_good_acme'))).rejects.toMatchObject({
      kind: 'resource_exhausted',
      reason: 'RATE_LIMITED',
      metadata: { retry_after_ms: '1000' },
    });
    expect(await gate(call('writ_good_rivals'))).toEqual({ person: person('rivals') });
  });

  it('counts halts separately, so that a flood of calls cannot block a halt of the same tenant (BD-2)', async () => {
    const admin: Person = { subject: 'root', tenant: 'acme', roles: ['admin'] };
    const auditor: Person = { subject: 'kim', tenant: 'audited', roles: ['auditor', 'caller'] };
    const known = new Map([
      ['writ_admin', admin],
      ['writ_auditor', auditor],
    ]);
    const verify = (key: string) => known.get(key) ?? apiKeys.verify(key);
    const rateLimit = tenantRateLimit({ perSecond: 1, burst: 1 }, new ManualClock());
    const gate = publicGate({ apiKeys: { verify }, rateLimit, clock: new ManualClock() });
    const { halt, resume, listHalts, reprioritize } = ControlService.method;
    const control = (rpc: DescMethod, key: string) => gate({ ...call(key), method: rpc });
    await gate(call('writ_good_acme'));
    for (const rpc of [halt, resume, listHalts]) {
      expect(await control(rpc, 'writ_admin')).toEqual({ person: admin });
      const limited = { reason: 'RATE_LIMITED' };
      await expect(control(rpc, 'writ_good_acme')).rejects.toMatchObject(limited);
      // Without the role, a call is counted.
      const notPermitted = { reason: 'ROLE_REQUIRED' };
      await expect(control(rpc, `writ_good_${rpc.name}`)).rejects.toMatchObject(notPermitted);
      await expect(control(rpc, `writ_good_${rpc.name}`)).rejects.toMatchObject(limited);
    }
    // A flood of halts is limited, too.
    for (let call = 3; call < 40; call += 1) await control(halt, 'writ_admin');
    await expect(control(halt, 'writ_admin')).rejects.toThrow(
      'Tenant acme exceeds the limit of 20 calls of Halt, Resume and ListHalts per second; retry in 50 ms.',
    );
    await expect(control(reprioritize, 'writ_admin')).rejects.toMatchObject({
      reason: 'RATE_LIMITED',
    });
    await gate(call('writ_auditor'));
    await expect(control(listHalts, 'writ_auditor')).rejects.toMatchObject({
      reason: 'RATE_LIMITED',
    });
  });

  it('counts reads of halts by auditors separately from halts, and limits them (BD-2)', async () => {
    const roles = { auditor: ['auditor'], admin: ['admin'] } as const;
    const verify = (key: string): Person | undefined => {
      const role = key === 'writ_admin' ? 'admin' : 'auditor';
      return { subject: role, tenant: 'acme', roles: roles[role] };
    };
    const gate = publicGate({ apiKeys: { verify }, clock: new ManualClock() });
    const { listHalts } = ControlService.method;
    const list = (key: string) => gate({ ...call(key), method: listHalts });
    for (let read = 0; read < 40; read += 1) await list('writ_auditor');
    await expect(list('writ_auditor')).rejects.toMatchObject({ reason: 'RATE_LIMITED' });
    await list('writ_admin');
  });

  it('verifies a token with the issuer only if it is not an API key (SYS-4)', async () => {
    const verified: string[] = [];
    const oidc = {
      verify: async (token: string) => {
        verified.push(token);
        if (token === 'late') throw new UnavailableError('ISSUER_UNAVAILABLE', 'Unavailable.');
        return person('acme');
      },
    };
    const gate = publicGate({ apiKeys, oidc });
    await expect(gate(call('writ_bad'))).rejects.toMatchObject({ reason: 'TOKEN_INVALID' });
    expect(await gate(call('a.b.c'))).toEqual({ person: person('acme') });
    await expect(gate(call('late'))).rejects.toMatchObject({ reason: 'ISSUER_UNAVAILABLE' });
    expect(verified).toEqual(['a.b.c', 'late']);
    const closed = publicGate({ apiKeys });
    await expect(closed(call('a.b.c'))).rejects.toMatchObject({ reason: 'TOKEN_INVALID' });
  });
});
