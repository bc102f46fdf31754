import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { ManualClock, PeerClocks } from '@writ/kernel';
import { createRpcServer, METADATA } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  createTrust,
  createVerifier,
  EVERY_SERVICE,
  internalGate,
  keyRoute,
  mintSlotGrant,
  openSigner,
  type ServiceName,
  serviceTokens,
} from '../src/index.ts';
import { CLAIMS, tempDir } from './fixtures.ts';

const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });

/** Starts the KeyService of a service that has its own clock. */
async function serviceWithClock(service: ServiceName) {
  const clock = new ManualClock();
  const signer = await openSigner({ service, keyDir: tempDir(), clock });
  const server = await createRpcServer({
    host: '127.0.0.1',
    port: 0,
    routes: [keyRoute(signer)],
    gate: async () => ({}),
    telemetry,
    clock,
  });
  onTestFinished(() => server.close(0));
  server.setServing(true);
  return { clock, signer, address: server.address };
}

async function setUp() {
  const spawnBudget = await serviceWithClock('spawn-budget');
  const worker = await serviceWithClock('agent-worker');
  const clock = new ManualClock();
  const peerClocks = new PeerClocks(clock);
  const addresses = { 'spawn-budget': spawnBudget.address, 'agent-worker': worker.address };
  const trust = createTrust({ addresses, telemetry, clock, peerClocks });
  onTestFinished(() => trust.close());
  const verifier = createVerifier({ trust, clock, peerClocks });
  const clocks = [clock, spawnBudget.clock, worker.clock];
  return {
    clock,
    peerClocks,
    spawnBudget,
    worker,
    verifier,
    /** Lets time pass on every clock. */
    pass: (ms: number) => {
      for (const each of clocks) each.advance(ms);
    },
    mint: async () => (await mintSlotGrant(spawnBudget.signer, CLAIMS.slot_grant)).token,
    verify: (token: string) =>
      verifier.verify('slot_grant', token, { issuer: 'spawn-budget', audience: EVERY_SERVICE }),
  };
}

describe('a verifier whose clock differs from that of the issuer', () => {
  it.each([-59_000, -30_000, 30_000, 59_000])(
    'accepts a slot grant for exactly its lifetime with a clock difference of %d ms (SB-4, BD-3)',
    async (skewMs) => {
      const { clock, pass, mint, verify } = await setUp();
      clock.step(skewMs);
      const token = await mint();
      pass(4_999);
      await verify(token);
      pass(1);
      await expect(verify(token)).rejects.toMatchObject({ reason: 'TOKEN_EXPIRED' });
    },
  );

  it('detects that the clock of the issuer was set back (BD-3)', async () => {
    const { spawnBudget, pass, mint, verify } = await setUp();
    await verify(await mint());
    spawnBudget.clock.step(-10_000);
    pass(1_000);
    await verify(await mint());
  });

  it('keeps accepting slot grants after its own clock was corrected (BD-3)', async () => {
    const { clock, pass, mint, verify } = await setUp();
    await verify(await mint());
    clock.step(30_000);
    const token = await mint();
    await verify(token);
    pass(5_000);
    await expect(verify(token)).rejects.toMatchObject({ reason: 'TOKEN_EXPIRED' });
  });
});

describe('a gate', () => {
  it('records the clock of a caller when only the times of its token are invalid (BD-3)', async () => {
    const { clock, peerClocks, worker, verifier } = await setUp();
    const gate = internalGate({
      service: 'supervisor',
      verifier,
      enforceSlotGrants: true,
      peerClocks,
    });
    clock.step(-3_600_000);
    const token = await serviceTokens(worker.signer, { audience: 'supervisor', replica: 'w1' })();
    const call = (authorization: string) => {
      const headers: Readonly<Record<string, string>> = {
        [METADATA.authorization]: `Bearer ${authorization}`,
        [METADATA.time]: String(worker.clock.now().getTime()),
      };
      return gate({ method: ReviewService.method.getDecision, header: (name) => headers[name] });
    };
    const forged = `${token.slice(0, -4)}AAAA`;
    await expect(call(forged)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' });
    const seen = () => peerClocks.offsets().get('agent-worker');
    // The GetKeys response of the worker also contained its clock: let that reading expire.
    clock.advance(10 * 60_000);
    worker.clock.advance(10 * 60_000);
    expect(seen()).toBeUndefined();
    await expect(call(forged)).rejects.toMatchObject({ metadata: { check: 'signature' } });
    expect(seen()).toBeUndefined();
    await expect(call(token)).rejects.toMatchObject({ metadata: { check: 'iat' } });
    expect(seen()).toBe(3_600_000);
  });
});
