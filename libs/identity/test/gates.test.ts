import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import type { CallOptions } from '@writ/rpc';
import { createRpcClient, createRpcServer, partialRoute, requireAgent } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  createTrust,
  createVerifier,
  internalGate,
  keyRoute,
  mintAgentCredentials,
  mintSlotGrant,
  requireSlotGrant,
  serviceTokens,
} from '../src/index.ts';
import { CLAIMS, createWorld, type World } from './fixtures.ts';

const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });

async function serve({ signers, clock }: World, enforceSlotGrants: boolean): Promise<string> {
  const keys = await Promise.all(
    (['agent-worker', 'spawn-budget'] as const).map(async (service) => {
      const server = await createRpcServer({
        host: '127.0.0.1',
        port: 0,
        routes: [keyRoute(signers[service])],
        gate: async () => ({}),
        telemetry,
      });
      onTestFinished(() => server.close(0));
      server.setServing(true);
      return [service, server.address] as const;
    }),
  );
  const addresses = Object.fromEntries(keys);
  const trust = createTrust({ addresses, telemetry, clock, self: signers.supervisor });
  onTestFinished(() => trust.close());
  const verifier = createVerifier({ trust, clock });
  const server = await createRpcServer({
    host: '127.0.0.1',
    port: 0,
    routes: [
      keyRoute(signers.supervisor),
      partialRoute(ReviewService, {
        async reviewAction({ partial }, call) {
          if (!partial) requireSlotGrant(call.caller);
          return { decision: { decisionId: requireAgent(call).agent.instance } };
        },
      }),
    ],
    gate: internalGate({ service: 'supervisor', verifier, enforceSlotGrants }),
    telemetry,
  });
  onTestFinished(() => server.close(0));
  server.setServing(true);
  return server.address;
}

/** Creates the credentials of a worker and a function that sends one proposal for review. */
async function worker(world: World, address: string) {
  const { signers } = world;
  const credentials = await mintAgentCredentials(signers.supervisor, CLAIMS.agent);
  const grant = await mintSlotGrant(signers['spawn-budget'], CLAIMS.slot_grant);
  const client = createRpcClient(ReviewService, {
    address,
    telemetry,
    serviceToken: serviceTokens(signers['agent-worker'], { audience: 'supervisor', replica: 'w1' }),
  });
  onTestFinished(() => client.close());
  const agent = { agentToken: credentials.supervisorToken ?? '', epoch: 3n };
  return {
    agent,
    granted: { ...agent, slotGrant: grant.token },
    review: async (options: CallOptions, partial = false) => {
      const proposal = { case: 'rawText' as const, value: '{}' };
      const { decision } = await client.reviewAction(
        { callId: 'call_1', proposal, partial },
        options,
      );
      return decision?.decisionId;
    },
  };
}

describe('gates over the wire', () => {
  it('allow a worker to act for its agent with token, epoch and slot grant (SB-4, SUP-9)', async () => {
    const world = await createWorld();
    const { review, agent, granted } = await worker(world, await serve(world, true));
    expect(await review(granted)).toBe('ag_1');
    await expect(review(agent)).rejects.toMatchObject({
      kind: 'failed_precondition',
      reason: 'SLOT_GRANT_REQUIRED',
    });
    expect(await review(agent, true)).toBe('ag_1');
    await expect(review({ ...granted, agentToken: 'garbage' })).rejects.toMatchObject({
      kind: 'unauthenticated',
      reason: 'TOKEN_INVALID',
      metadata: { token: 'agent' },
    });
  });

  it('require no grant while grants are not enforced', async () => {
    const world = await createWorld();
    const { review, agent } = await worker(world, await serve(world, false));
    expect(await review(agent)).toBe('ag_1');
  });

  it('serve only keys to callers without credentials', async () => {
    const world = await createWorld();
    const address = await serve(world, true);
    const anonymous = createRpcClient(KeyService, { address, telemetry });
    onTestFinished(() => anonymous.close());
    expect((await anonymous.getKeys({})).service).toBe('supervisor');
    const client = createRpcClient(ReviewService, { address, telemetry });
    onTestFinished(() => client.close());
    await expect(client.getDecision({ callId: 'call_1' })).rejects.toMatchObject({
      kind: 'unauthenticated',
      reason: 'TOKEN_MISSING',
    });
  });
});
