import { sha256Hex } from '@writ/kernel';
import { beforeEach, describe, expect, it } from 'vitest';
import { AGENT, ARGUMENTS, CLAIMS, createWorld, tokenOf, type World } from '../../test/fixtures.ts';
import { trustSigners } from '../keys/trust.ts';
import { mintReceipt, readReceipt } from './receipt.ts';
import { createVerifier } from './verifier.ts';
import { checkWrit, mintWrit, type OrderedCall } from './writ.ts';

const ORDER: OrderedCall = {
  call: { tenant: 'acme', runId: 'run_1', instance: AGENT.instance, callId: 'call_1' },
  tool: 'issue_refund',
  argumentsJson: ARGUMENTS,
};

describe('writ', () => {
  let world: World;
  beforeEach(async () => {
    world = await createWorld();
  });

  const mint = () => mintWrit(world.signers.supervisor, CLAIMS.writ, 30_000);

  it('authorizes exactly one call and returns its id and definition digest (TG-1, SV-6)', async () => {
    const { token, id } = await mint();
    const writ = await checkWrit(world.verifier, token, ORDER);
    expect(id).toMatch(/^writ_/);
    expect(writ).toMatchObject({ id, issuer: 'supervisor', expired: false });
    expect(writ.claims).toMatchObject({
      definitionDigest: sha256Hex('definition'),
      maxToolCalls: 5,
    });
    await checkWrit(world.verifier, token, { ...ORDER, argumentsJson: Buffer.from(ARGUMENTS) });
  });

  it('rejects any other call, naming the field that differs (TG-1)', async () => {
    const { token, id } = await mint();
    const others: Record<string, OrderedCall> = {
      tenant: { ...ORDER, call: { ...ORDER.call, tenant: 'beta' } },
      run_id: { ...ORDER, call: { ...ORDER.call, runId: 'run_2' } },
      agent_instance: { ...ORDER, call: { ...ORDER.call, instance: 'ag_2' } },
      call_id: { ...ORDER, call: { ...ORDER.call, callId: 'call_2' } },
      tool: { ...ORDER, tool: 'issue_refunds' },
      arguments_json: { ...ORDER, argumentsJson: '{"user_id": 42}' },
    };
    for (const [field, order] of Object.entries(others))
      for (const allowExpired of [false, true])
        await expect(
          checkWrit(world.verifier, token, order, { allowExpired }),
        ).rejects.toMatchObject({
          kind: 'permission_denied',
          reason: 'WRIT_MISMATCH',
          metadata: { field, writ_id: id },
        });
  });

  it('expires without leeway, but is accepted after expiry for the repeat of a recorded call (TG-1)', async () => {
    const { token } = await mint();
    world.clock.advance(29_999);
    await checkWrit(world.verifier, token, ORDER);
    world.clock.advance(1);
    await expect(checkWrit(world.verifier, token, ORDER)).rejects.toMatchObject({
      kind: 'permission_denied',
      reason: 'WRIT_EXPIRED',
    });
    expect((await checkWrit(world.verifier, token, ORDER, { allowExpired: true })).expired).toBe(
      true,
    );
  });

  it('is rejected with WRIT_INVALID unless the supervisor signed it for the gateway (TG-1)', async () => {
    const claims = CLAIMS.writ;
    const ttlMs = 30_000;
    const byWorker = await world.signers['agent-worker'].sign('writ', {
      audience: 'tool-gateway',
      claims,
      ttlMs,
    });
    const otherAudience = await world.signers.supervisor.sign('writ', {
      audience: 'supervisor',
      claims,
      ttlMs,
    });
    const receipt = await tokenOf(world, 'receipt');
    for (const token of [byWorker.token, otherAudience.token, receipt, '', 'garbage'])
      await expect(checkWrit(world.verifier, token, ORDER)).rejects.toMatchObject({
        kind: 'permission_denied',
        reason: 'WRIT_INVALID',
      });
  });

  it('is rejected with an unavailable error when the keys of the supervisor are unavailable (SYS-4)', async () => {
    const { token } = await mint();
    const verifier = createVerifier({ trust: trustSigners(), clock: world.clock });
    await expect(checkWrit(verifier, token, ORDER)).rejects.toMatchObject({ kind: 'unavailable' });
  });
});

describe('receipt', () => {
  it('is valid for thirty days (TG-8)', async () => {
    const world = await createWorld();
    const { token, id } = await mintReceipt(world.signers['tool-gateway'], CLAIMS.receipt);
    world.clock.advance(30 * 24 * 60 * 60 * 1000 - 1);
    const receipt = await readReceipt(world.verifier, token);
    expect(id).toMatch(/^rcpt_/);
    expect(receipt.id).toBe(id);
    expect(receipt.claims.resultFields).toEqual({ refund: { amount_usd: 12.5 } });
  });

  it('is rejected as invalid when the gateway did not sign it (TG-8)', async () => {
    const world = await createWorld();
    const forged = await mintReceipt(world.signers['agent-worker'], CLAIMS.receipt);
    for (const token of [forged.token, await tokenOf(world, 'writ'), 'garbage'])
      await expect(readReceipt(world.verifier, token)).rejects.toMatchObject({
        kind: 'invalid_argument',
        reason: 'RECEIPT_INVALID',
      });
  });

  it('is rejected with the check kid when its key is unknown, for example until the keys are reloaded (TG-8, SV-6)', async () => {
    const world = await createWorld();
    const rotated = await createWorld();
    const { token } = await mintReceipt(rotated.signers['tool-gateway'], CLAIMS.receipt);
    await expect(readReceipt(world.verifier, token)).rejects.toMatchObject({
      reason: 'RECEIPT_INVALID',
      metadata: { check: 'kid', token: 'receipt' },
    });
  });
});
