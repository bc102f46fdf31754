import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import type { ClaimsInit, SignOptions, TokenKind } from '@writ/identity';
import { sha256Hex } from '@writ/kernel';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import type { TestCall } from './test-call.ts';

let fixture: Fixture;
let otherPeer: KeyPeer;

beforeAll(async () => {
  fixture = await startFixture({ pooledTenants: ['pooled'] });
  otherPeer = await startKeyPeer('supervisor');
});

afterAll(async () => {
  await otherPeer.close();
  await fixture[Symbol.asyncDispose]();
});

// Checks that no test ran a tool or recorded a call.
afterEach(async () => {
  expect(fixture.world.executions).toEqual([]);
  expect(await fixture.gateway.store.db.selectFrom('calls').selectAll().execute()).toEqual([]);
  expect(await fixture.gateway.store.db.selectFrom('receipts').selectAll().execute()).toEqual([]);
});

/** The latest recorded refusal. */
async function refusal() {
  return await fixture.gateway.store.db
    .selectFrom('refusals')
    .select(['reason', 'field', 'call_id', 'presented_by'])
    .orderBy('position', 'desc')
    .executeTakeFirst();
}

async function refused(call: TestCall, reason: string, field: string): Promise<void> {
  await expect(fixture.call(call)).rejects.toMatchObject({ kind: 'permission_denied', reason });
  expect(await refusal()).toEqual({ reason, field, call_id: 'op-1', presented_by: 'test-1' });
}

async function refusedToken(token: string, reason = 'WRIT_INVALID'): Promise<void> {
  const request = { ...(await fixture.request()), writ: token };
  await expect(fixture.asWorker.callTool(request, { epoch: 1n })).rejects.toMatchObject({
    kind: 'permission_denied',
    reason,
  });
  expect((await refusal())?.reason).toBe(reason);
}

/** Signs a token with the claims of a matching writ; `over` overrides its signing options. */
async function signed<K extends TokenKind>(
  kind: K,
  over: Partial<SignOptions<K>>,
  by: KeyPeer = fixture.supervisor,
): Promise<string> {
  const claims = {
    tenant: 'acme',
    runId: 'run_1',
    agent: { name: 'payer', instance: 'payer-1' },
    callId: 'op-1',
    tool: 'pay',
    definitionDigest: 'digest',
    argsSha256: sha256Hex('{"to":"anna"}'),
    decisionId: 'decision_1',
    executedFrom: 'original',
    allowedTools: ['pay'],
    // Claims of the other kinds, so that only the kind is wrong.
    sessionId: 'session_1',
    priority: 3,
    status: CallStatus.OK,
    revision: 1,
  };
  const options = { audience: 'tool-gateway', claims, ttlMs: 60_000, ...over };
  return (await by.signer.sign(kind, options as unknown as SignOptions<K>)).token;
}

describe('a call without a matching writ is rejected', () => {
  it('without a writ (TG-1)', async () => {
    const request = { ...(await fixture.request()), writ: '' };
    await expect(fixture.asWorker.callTool(request, { epoch: 1n })).rejects.toMatchObject({
      kind: 'invalid_argument',
      metadata: expect.objectContaining({ field: 'writ' }),
    });
  });

  it('with a writ that is not a token (TG-1)', () => refusedToken('not.a.token'));

  it('with a writ for arguments that differ by a space (TG-1)', () =>
    refused(
      { writ: { argsSha256: sha256Hex('{"to": "anna"}') } },
      'WRIT_MISMATCH',
      'arguments_json',
    ));

  it('with a writ for another tool (TG-1)', () =>
    refused({ writ: { tool: 'charge' } }, 'WRIT_MISMATCH', 'tool'));

  it('with a writ for another run (TG-1)', () =>
    refused({ writ: { runId: 'run_2' } }, 'WRIT_MISMATCH', 'run_id'));

  it('with a writ for another agent (TG-1)', () =>
    refused(
      { writ: { agent: { name: 'payer', instance: 'payer-2' } } },
      'WRIT_MISMATCH',
      'agent_instance',
    ));

  it('with a writ for another call (TG-1)', () =>
    refused({ writ: { callId: 'op-2' } }, 'WRIT_MISMATCH', 'call_id'));

  it('with a writ for another tenant (TG-1, SYS-6)', () =>
    refused({ writ: { tenant: 'other' } }, 'WRIT_MISMATCH', 'tenant'));

  it('with an expired writ (TG-1)', () => refused({ ttlMs: -1 }, 'WRIT_EXPIRED', ''));

  it('with a writ for another audience (TG-1)', async () =>
    refusedToken(await signed('writ', { audience: 'execution-meter' })));

  it('with a token of another kind (TG-1)', async () => {
    await refusedToken(await signed('agent', {}));
    await refusedToken(await signed('receipt', { audience: 'supervisor' }, await gatewayPeer()));
  });

  it('with a writ of another signer, even under the key id of the supervisor (TG-1)', async () => {
    const [header] = (await signed('writ', {})).split('.');
    const [ownHeader, payload, signature] = (await signed('writ', {}, otherPeer)).split('.');
    await refusedToken([header, payload, signature].join('.'));
    const request = {
      ...(await fixture.request()),
      writ: [ownHeader, payload, signature].join('.'),
    };
    await expect(fixture.asWorker.callTool(request, { epoch: 1n })).rejects.toMatchObject({
      // Keys are fetched at most once a second; before the next fetch, the reason is KEYS_UNAVAILABLE.
      reason: expect.stringMatching(/^(WRIT_INVALID|KEYS_UNAVAILABLE)$/),
    });
  });

  it('with a writ whose claims were changed after signing (TG-1)', async () => {
    const [header, payload = '', signature] = (await signed('writ', {})).split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as ClaimsInit<'writ'>;
    const changed = Buffer.from(JSON.stringify({ ...claims, exp: 4_000_000_000 }));
    await refusedToken([header, changed.toString('base64url'), signature].join('.'));
  });

  it('with a writ that requests more fields than a receipt can hold (TG-8)', () =>
    refused({ writ: { resultFields: Array(65).fill('a') } }, 'WRIT_INVALID', 'result_fields'));

  it('from a worker that does not serve the tenant, without a record (SYS-6)', async () => {
    const otherTenant = fixture.worker.client(
      ToolGatewayService,
      { audience: 'tool-gateway', address: fixture.gateway.address },
      { replica: 'test-2', tenants: ['other'] },
    );
    const before = await refusal();
    await expect(
      otherTenant.callTool(await fixture.request(), { epoch: 1n }),
    ).rejects.toMatchObject({
      reason: 'TENANT_NOT_SERVED',
    });
    // A record would enter the audit chain of a tenant that the caller does not serve.
    expect(await refusal()).toEqual(before);
  });

  it('from a worker of the default pool, for a tenant with its own pool, without a record (SYS-6)', async () => {
    const before = await refusal();
    const call = { tenant: 'pooled', callId: 'op-9' };
    const garbage = { ...(await fixture.request(call)), writ: 'not.a.token' };
    await expect(fixture.asWorker.callTool(garbage, { epoch: 1n })).rejects.toMatchObject({
      reason: 'WRIT_INVALID',
    });
    expect(await refusal()).toEqual(before);
  });

  it('and recorded, even when another tenant has reached the limit of records (SYS-6)', async () => {
    const { store } = fixture.gateway;
    const flood = Array.from({ length: 2_000 }, (_, index) => ({
      refusal_id: `flood_${index}`,
      tenant: 'flooded',
      run_id: 'run_1',
      agent_instance: 'payer-1',
      call_id: `op-${index}`,
      reason: 'WRIT_INVALID',
      field: '',
      writ_sha256: '',
      presented_by: 'test-1',
      refused_at: new Date(),
    }));
    await store.transaction((trx) => trx.insertInto('refusals').values(flood).execute());
    const present = async (tenant: string) => {
      const call = { tenant, callId: 'after-flood' };
      const garbage = { ...(await fixture.request(call)), writ: 'not.a.token' };
      await expect(fixture.asWorker.callTool(garbage, { epoch: 1n })).rejects.toThrow();
      const kept = store.db.selectFrom('refusals').select('tenant');
      return await kept.where('call_id', '=', 'after-flood').execute();
    };
    expect(await present('flooded')).toEqual([]);
    expect(await present('other')).toEqual([{ tenant: 'other' }]);
  });
});

async function gatewayPeer(): Promise<KeyPeer> {
  const peer = await startKeyPeer('tool-gateway');
  await peer.close();
  return peer;
}
