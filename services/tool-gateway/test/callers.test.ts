import { FreezeCause } from '@writ/contracts/writ/control/v1/freeze_pb';
import { ResolvedOutcome } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fixture, startFixture } from './gateway-fixture.ts';
import { keyOf } from './test-call.ts';

let fixture: Fixture;

beforeAll(async () => {
  fixture = await startFixture();
});

afterAll(() => fixture[Symbol.asyncDispose]());

const denied = { kind: 'permission_denied', reason: 'CALLER_NOT_ALLOWED' };

describe('permissions (SYS-6)', () => {
  it('denies a worker VoidWrit, ResolveOutcome, Freeze and Unfreeze', async () => {
    const { asWorker } = fixture;
    const call = keyOf();
    const order = {
      orderId: 'order_1',
      scope: { kind: { case: 'tenant', value: 'acme' } },
      cause: FreezeCause.HALT,
      reason: 'Because.',
    } as const;
    await expect(asWorker.voidWrit({ call })).rejects.toMatchObject(denied);
    await expect(
      asWorker.resolveOutcome({
        requestId: 'r1',
        call,
        outcome: ResolvedOutcome.NOT_DONE,
        resolvedBy: 'me',
      }),
    ).rejects.toMatchObject(denied);
    await expect(asWorker.freeze({ order })).rejects.toMatchObject(denied);
    await expect(asWorker.unfreeze({ orderId: 'order_1' })).rejects.toMatchObject(denied);
    expect(fixture.gateway.store.commits).toBe(0);
  });

  it('denies CallTool to every caller except workers, including the supervisor', async () => {
    const request = await fixture.request();
    await expect(fixture.asSupervisor.callTool(request)).rejects.toMatchObject(denied);
  });

  it('requires the epoch of the worker in every call (RT-2)', async () => {
    const request = await fixture.request();
    await expect(fixture.asWorker.callTool(request)).rejects.toMatchObject({
      kind: 'invalid_argument',
      metadata: { field: 'writ-epoch' },
    });
    expect(fixture.world.executions).toEqual([]);
  });
});

describe('ListTools (TG-6)', () => {
  it('lists every tool to the supervisor, with schema, limits and digest', async () => {
    const { tools, registryVersion, emitsHookEvents } = await fixture.asSupervisor.listTools({});
    expect(emitsHookEvents).toBe(true);
    expect(tools.map(({ name }) => name)).toEqual(['charge', 'look', 'pay']);
    expect(JSON.parse(tools[0]?.inputSchemaJson ?? '')).toMatchObject({ required: ['to'] });
    expect(tools[0]?.definitionDigest).toMatch(/^[0-9a-f]{64}$/);
    expect(registryVersion).toMatch(/^[0-9a-f]{64}$/);
  });

  it('lists to a worker only the tools that its agent may call', async () => {
    const listed = async (tools: readonly string[]) => {
      const { toolGatewayToken } = await fixture.supervisor.agentCredentials({
        tenant: 'acme',
        runId: 'run_1',
        agent: { name: 'payer', instance: 'payer-1' },
        tools,
      });
      const answer = await fixture.asWorker.listTools(
        {},
        { agentToken: toolGatewayToken, epoch: 1n },
      );
      return answer.tools.map(({ name }) => name);
    };
    expect(await listed(['look', 'unknown'])).toEqual(['look']);
    expect(await listed([])).toEqual([]);
  });

  it('returns no tools when the caller has the current version', async () => {
    const { registryVersion } = await fixture.asSupervisor.listTools({});
    expect(await fixture.asSupervisor.listTools({ knownVersion: registryVersion })).toMatchObject({
      tools: [],
      unchanged: true,
      registryVersion,
    });
    const other = await fixture.asSupervisor.listTools({ knownVersion: 'other' });
    expect(other).toMatchObject({ unchanged: false });
    expect(other.tools).toHaveLength(3);
  });

  it('pages by name', async () => {
    const first = await fixture.asSupervisor.listTools({ pageSize: 2 });
    expect(first.tools.map(({ name }) => name)).toEqual(['charge', 'look']);
    const rest = await fixture.asSupervisor.listTools({
      pageSize: 2,
      pageToken: first.nextPageToken,
    });
    expect(rest.tools.map(({ name }) => name)).toEqual(['pay']);
    expect(rest.nextPageToken).toBe('');
    const named = await fixture.asSupervisor.listTools({ names: ['pay', 'none'] });
    expect(named.tools.map(({ name }) => name)).toEqual(['pay']);
    await expect(fixture.asSupervisor.listTools({ pageToken: '%%' })).rejects.toMatchObject({
      reason: 'INVALID_PAGE_TOKEN',
    });
  });
});
