import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { Priority } from '@writ/kernel';
import { type GateCall, METADATA } from '@writ/rpc';
import { beforeEach, describe, expect, it } from 'vitest';
import { AGENT, CLAIMS, createWorld, type World } from '../../test/fixtures.ts';
import { mintAgentCredentials } from '../tokens/agent-token.ts';
import { serviceTokens } from '../tokens/service-tokens.ts';
import { mintSlotGrant, requireSlotGrant } from '../tokens/slot-grant.ts';
import { internalGate } from './internal-gate.ts';
import type { ServiceName } from './names.ts';

type Method = GateCall['method'];

interface Credentials {
  readonly audience?: ServiceName;
  readonly tenants?: readonly string[];
  readonly grant?: {
    readonly tenant?: string;
    readonly runId?: string;
    readonly agentInstance?: string;
    readonly epoch?: bigint;
  } | null;
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

describe('internal gate', () => {
  let world: World;
  beforeEach(async () => {
    world = await createWorld();
  });

  const headersOf = async (server: ServiceName, given: Credentials) => {
    const { signers } = world;
    const audience = given.audience ?? server;
    const tenants = given.tenants ?? [];
    const serviceToken = serviceTokens(signers['agent-worker'], {
      audience,
      replica: 'w1',
      tenants,
    });
    const credentials = await mintAgentCredentials(signers.supervisor, CLAIMS.agent);
    const agentToken = {
      supervisor: credentials.supervisorToken,
      'spawn-budget': credentials.spawnBudgetToken,
      'execution-meter': credentials.executionMeterToken,
      'tool-gateway': credentials.toolGatewayToken,
      'agent-worker': '',
      'agent-proxy': '',
    }[server];
    const grant = await mintSlotGrant(signers['spawn-budget'], {
      ...CLAIMS.slot_grant,
      ...given.grant,
    });
    return {
      [METADATA.authorization]: `Bearer ${await serviceToken()}`,
      [METADATA.agentToken]: agentToken,
      [METADATA.slotGrant]: given.grant === null ? undefined : grant.token,
      [METADATA.epoch]: '3',
      ...given.headers,
    };
  };

  const call = async (
    server: ServiceName,
    method: Method,
    given: Credentials = {},
    options: {
      enforceSlotGrants?: boolean;
      waitMs?: number;
      trustDomain?: string;
      peerUris?: readonly string[];
    } = {},
  ) => {
    const headers: Readonly<Record<string, string | undefined>> = await headersOf(server, given);
    world.clock.advance(options.waitMs ?? 0);
    const gate = internalGate({
      service: server,
      verifier: world.verifier,
      enforceSlotGrants: options.enforceSlotGrants ?? true,
      trustDomain: options.trustDomain,
    });
    return gate({ method, peerUris: options.peerUris, header: (name) => headers[name] });
  };

  const { generate, listModels } = ModelService.method;
  const { reviewAction } = ReviewService.method;
  const { refreshTokens, endChild } = SupervisionService.method;

  it('passes service, agent, epoch and slot grant to the handler (SUP-9, RT-2, SB-4)', async () => {
    expect(await call('execution-meter', generate)).toEqual({
      service: { name: 'agent-worker', replica: 'w1', tenants: [] },
      agent: {
        tenant: 'acme',
        runId: 'run_1',
        sessionId: 'ses_1',
        agent: AGENT,
        parent: { name: 'boss', instance: 'ag_0' },
        depth: 1,
        priority: Priority.HIGH,
        models: ['default'],
        tools: ['get_refund_context'],
      },
      epoch: 3n,
      slotGrant: {
        tenant: 'acme',
        runId: 'run_1',
        agentInstance: AGENT.instance,
        priority: Priority.HIGH,
        epoch: 3n,
        expireTime: new Date(world.clock.now().getTime() + 5_000),
      },
    });
  });

  const certified = (...peerUris: string[]) =>
    call('execution-meter', generate, {}, { trustDomain: 'writ.local', peerUris });

  it('accepts a token only with the certificate of the same service when certificates are required (SYS-6)', async () => {
    const worker = 'spiffe://writ.local/writ/agent-worker';
    await expect(certified(worker)).resolves.toMatchObject({ service: { name: 'agent-worker' } });
    await expect(certified('spiffe://writ.local/writ/tool-gateway')).rejects.toMatchObject({
      reason: 'CALLER_NOT_ALLOWED',
      message: `The certificate of tool-gateway may not call writ.model.v1.ModelService/Generate.`,
    });
    const both = { trustDomain: 'writ.local', peerUris: ['spiffe://writ.local/writ/supervisor'] };
    await expect(call('execution-meter', listModels, {}, both)).rejects.toMatchObject({
      reason: 'CALLER_NOT_ALLOWED',
      message: expect.stringMatching(
        /^The certificate of supervisor with a token of agent-worker may not/,
      ),
    });
    for (const uris of [
      [],
      ['spiffe://else.local/writ/agent-worker'],
      ['spiffe://writ.local/writ/unknown'],
      ['spiffe://writ.local/agent-worker'],
      [`${worker}/x`],
      ['https://writ.local/writ/agent-worker'],
      [worker, worker],
    ])
      await expect(certified(...uris), uris.join()).rejects.toMatchObject({
        kind: 'permission_denied',
        reason: 'CALLER_NOT_ALLOWED',
      });
  });

  it('rejects callers without a certificate when one is required (SYS-4, SYS-6)', async () => {
    const uncertified = call('execution-meter', generate, {}, { trustDomain: 'writ.local' });
    await expect(uncertified).rejects.toMatchObject({
      kind: 'unauthenticated',
      reason: 'CERTIFICATE_MISSING',
    });
  });

  it('names the missing token and its metadata key', async () => {
    const missing = (key: string) =>
      call('execution-meter', generate, { headers: { [key]: undefined } });
    for (const key of [METADATA.authorization, METADATA.agentToken])
      await expect(missing(key)).rejects.toMatchObject({
        kind: 'unauthenticated',
        reason: 'TOKEN_MISSING',
        metadata: { metadata_key: key },
      });
    for (const authorization of ['', 'Bearer', 'Bearer ', 'Basic x', 'Bearer a b'])
      await expect(
        call('execution-meter', generate, { headers: { authorization } }),
      ).rejects.toMatchObject({
        reason: 'TOKEN_MISSING',
      });
  });

  it('rejects a service token for another audience', async () => {
    const outcome = call('execution-meter', generate, { audience: 'tool-gateway' });
    await expect(outcome).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
      metadata: { token: 'service', check: 'aud' },
    });
  });

  it('rejects an agent token for another audience in the same metadata key (SUP-9)', async () => {
    const { spawnBudgetToken } = await mintAgentCredentials(world.signers.supervisor, CLAIMS.agent);
    const headers = { [METADATA.agentToken]: spawnBudgetToken };
    await expect(call('execution-meter', generate, { headers })).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
      metadata: { token: 'agent', check: 'aud' },
    });
  });

  it('rejects a service token that names another service than its signer (SYS-6)', async () => {
    const { token } = await world.signers['agent-worker'].sign('service', {
      audience: 'execution-meter',
      claims: { name: 'supervisor', replica: 'w1' },
      ttlMs: 60_000,
    });
    const headers = { [METADATA.authorization]: `Bearer ${token}` };
    await expect(
      call('execution-meter', ExecutionMeterService.method.openTab, { headers }),
    ).rejects.toMatchObject({ reason: 'CALLER_NOT_ALLOWED' });
  });

  it('limits a worker to the tenants that it serves (SYS-6)', async () => {
    await call('execution-meter', generate, { tenants: ['beta', 'acme'] });
    await expect(call('execution-meter', generate, { tenants: ['beta'] })).rejects.toMatchObject({
      kind: 'permission_denied',
      reason: 'TENANT_NOT_SERVED',
      metadata: { tenant: 'acme' },
    });
  });

  it('requires a decimal epoch for calls under a lease (RT-2)', async () => {
    const withEpoch = (epoch: string | undefined, method: Method = generate) =>
      call('execution-meter', method, { headers: { [METADATA.epoch]: epoch } });
    await expect(withEpoch(undefined)).rejects.toMatchObject({
      kind: 'invalid_argument',
      reason: 'EPOCH_MISSING',
    });
    for (const epoch of [
      '-1',
      '1.0',
      '0x1',
      '01',
      ' 1',
      '9223372036854775808',
      '99999999999999999999',
    ])
      await expect(withEpoch(epoch), epoch).rejects.toMatchObject({ reason: 'EPOCH_MALFORMED' });
    expect((await withEpoch('9223372036854775807', listModels)).epoch).toBe(9223372036854775807n);
    expect((await withEpoch(undefined, listModels)).epoch).toBeUndefined();
  });

  it('rejects an expired agent token, except to refresh it (SUP-9)', async () => {
    const credentials = await mintAgentCredentials(world.signers.supervisor, CLAIMS.agent);
    world.clock.advance(60 * 60 * 1000);
    const headers = { [METADATA.agentToken]: credentials.supervisorToken };
    await expect(call('supervisor', endChild, { headers })).rejects.toMatchObject({
      reason: 'TOKEN_EXPIRED',
      metadata: { token: 'agent' },
    });
    expect((await call('supervisor', refreshTokens, { headers })).agent?.runId).toBe('run_1');
  });

  it('rejects an agent token that was issued in the future by a wrong clock, except to refresh it (BD-3)', async () => {
    world.clock.step(60 * 60 * 1000);
    const credentials = await mintAgentCredentials(world.signers.supervisor, CLAIMS.agent);
    world.clock.step(-60 * 60 * 1000);
    const headers = { [METADATA.agentToken]: credentials.supervisorToken };
    await expect(call('supervisor', endChild, { headers })).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
      metadata: { token: 'agent', check: 'iat' },
    });
    expect((await call('supervisor', refreshTokens, { headers })).agent?.runId).toBe('run_1');
  });

  it('ignores agent tokens for calls authorized by a writ (TG-1)', async () => {
    const headers = { [METADATA.agentToken]: 'garbage', [METADATA.slotGrant]: 'garbage' };
    const caller = await call('tool-gateway', ToolGatewayService.method.callTool, { headers });
    expect(caller).toEqual({
      service: { name: 'agent-worker', replica: 'w1', tenants: [] },
      epoch: 3n,
    });
  });

  it('rejects actions without a current slot grant (SB-4)', async () => {
    await expect(call('execution-meter', generate, { grant: null })).rejects.toMatchObject({
      kind: 'failed_precondition',
      reason: 'SLOT_GRANT_REQUIRED',
    });
    await call('execution-meter', generate, {}, { waitMs: 4_999 });
    await expect(call('execution-meter', generate, {}, { waitMs: 5_000 })).rejects.toMatchObject({
      kind: 'failed_precondition',
      reason: 'SLOT_GRANT_EXPIRED',
    });
    await call('execution-meter', listModels, { grant: null });
  });

  it('rejects a grant for another tenant, run or agent, or for a later lease (SB-4, RT-2)', async () => {
    const others = { tenant: 'beta', run_id: 'run_2', agent_instance: 'ag_2', epoch: 4n };
    const claims = {
      tenant: others.tenant,
      runId: others.run_id,
      agentInstance: others.agent_instance,
      epoch: others.epoch,
    };
    for (const [field, grant] of Object.entries({
      tenant: { tenant: claims.tenant },
      run_id: { runId: claims.runId },
      agent_instance: { agentInstance: claims.agentInstance },
      epoch: { epoch: claims.epoch },
    }))
      await expect(
        call('execution-meter', generate, { grant }, { enforceSlotGrants: false }),
      ).rejects.toMatchObject({
        reason: 'SLOT_GRANT_MISMATCH',
        metadata: { field },
      });
    await call('execution-meter', generate, { grant: { epoch: 0n } });
  });

  it('rejects a forged grant even when grants are not enforced (SB-4)', async () => {
    const { token } = await world.signers['agent-worker'].sign('slot_grant', {
      audience: 'writ',
      claims: CLAIMS.slot_grant,
      ttlMs: 5_000,
    });
    const headers = { [METADATA.slotGrant]: token };
    for (const enforceSlotGrants of [true, false])
      await expect(
        call('execution-meter', generate, { headers }, { enforceSlotGrants }),
      ).rejects.toMatchObject({
        reason: 'TOKEN_INVALID',
        metadata: { token: 'slot_grant' },
      });
  });

  it('requires no grant while grants are not enforced, and does not pass expired grants to the handler', async () => {
    const lenient = { enforceSlotGrants: false };
    const without = await call('execution-meter', generate, { grant: null }, lenient);
    requireSlotGrant(without);
    const expired = await call('execution-meter', generate, {}, { ...lenient, waitMs: 5_000 });
    expect(expired.slotGrant).toBeUndefined();
    requireSlotGrant(expired);
  });

  it('lets the handler decide whether an RPC with unless_partial requires a slot grant (SB-4)', async () => {
    const none = await call('supervisor', reviewAction, { grant: null });
    expect(() => requireSlotGrant(none)).toThrow('ag_1 requires a current slot grant');
    const expired = await call('supervisor', reviewAction, {}, { waitMs: 5_000 });
    expect(() => requireSlotGrant(expired)).toThrow('has expired');
    requireSlotGrant(await call('supervisor', reviewAction));
    expect(() => requireSlotGrant({})).toThrow('slot grant');
  });

  it('denies an RPC without a row in the caller table (SYS-4)', async () => {
    const unlisted = { ...KeyService.method.getKeys, name: 'Later' };
    await expect(call('supervisor', unlisted)).rejects.toMatchObject({
      reason: 'CALLER_NOT_ALLOWED',
    });
  });
});
