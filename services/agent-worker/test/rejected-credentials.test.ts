import {
  InvalidRequestError,
  OverloadedError,
  PermissionDeniedError,
  UnauthenticatedError,
  type WritError,
} from '@writ/kernel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ScriptedModel } from './scripted-model.ts';
import { World } from './world.ts';

let scripts: ScriptedModel;

beforeAll(async () => {
  scripts = await ScriptedModel.start();
});

afterAll(() => scripts[Symbol.asyncDispose]());

function startWorld(): Promise<World> {
  return World.start({ model: scripts.model('auto-1000') });
}

/** Errors of a supervisor that does not know the key of a receipt. */
function receiptErrors(length: number): WritError[] {
  const metadata = { token: 'receipt', check: 'kid' };
  return Array.from(
    { length },
    () => new InvalidRequestError('RECEIPT_INVALID', 'Its key is not known.', metadata),
  );
}

describe('a worker whose receipts, tokens or writs are rejected', () => {
  it.each([
    new InvalidRequestError('RECEIPT_INVALID', 'Not signed.'),
    new InvalidRequestError('INVALID_FIELD', 'Too many receipts.'),
    new OverloadedError('MESSAGE_TOO_LARGE', 'Too large.'),
  ])(
    'reports the end without the receipts when the supervisor refuses them: $reason (TG-8, BD-3)',
    async (refused) => {
      const world = await startWorld();
      const stopReason = `error:${refused.reason.toLowerCase()}`;
      world.faults.failAt('before review op-4', refused);
      world.faults.failAt(`before report ${stopReason}`, refused);
      await world.startWorker();
      await world.deliver();
      const ended = await world.until('ERROR');
      expect(ended).toMatchObject({ stopReason, epoch: 1n });
      expect(world.supervisor.reports.map(({ receipts }) => receipts.length)).toEqual([1, 0]);
    },
  );

  it('sends receipts again until the supervisor knows their key (TG-8, SV-6)', async () => {
    const world = await startWorld();
    world.faults.failAt('before review op-4', ...receiptErrors(5));
    await world.startWorker();
    await world.deliver();
    const { stopReason, epoch } = await world.until('COMPLETED');
    expect({ stopReason, epoch }).toEqual({ stopReason: 'success', epoch: 1n });
    const reviews = world.supervisor.requests.filter(({ callId }) => callId === 'op-4');
    expect(reviews.map(({ receipts }) => receipts)).toEqual(
      Array.from({ length: 6 }, () => ['receipt-op-2']),
    );
    expect(world.gateway.executed).toHaveLength(3);
  });

  it('ends an agent whose receipt has a key that never becomes known (TG-8, SV-6)', async () => {
    const world = await startWorld();
    world.faults.failAt('before review op-4', ...receiptErrors(1_000));
    world.faults.failAt('before report error:receipt_invalid', ...receiptErrors(110));
    await world.startWorker({ retryMaxMs: 1 });
    await world.deliver();
    const { stopReason, epoch } = await world.until('ERROR');
    expect({ stopReason, epoch }).toEqual({ stopReason: 'error:receipt_invalid', epoch: 1n });
    expect(world.supervisor.reports.at(-1)?.receipts).toEqual([]);
  });

  it.each([
    ['with a timestamp of a wrong clock', 'iat'],
    ['whose key the service does not know yet', 'kid'],
  ])('renews tokens and writs %s until the call succeeds (BD-3, SV-6)', async (_, check) => {
    const world = await startWorld();
    const early = { check, token: 'agent' };
    world.faults.failAt(
      'before review op-2',
      ...Array.from(
        { length: 5 },
        () => new UnauthenticatedError('TOKEN_INVALID', 'Early.', early),
      ),
    );
    world.faults.failAt(
      'before call_tool op-2',
      ...Array.from({ length: 5 }, () => {
        return new PermissionDeniedError('WRIT_INVALID', 'Early.', { check });
      }),
    );
    await world.startWorker();
    await world.deliver();
    const { stopReason } = await world.until('COMPLETED');
    expect(stopReason).toBe('success');
    expect(world.supervisor.refreshes).toBe(5);
    const writs = world.gateway.requests.filter(({ call }) => call?.callId === 'op-2');
    expect(new Set(writs.map(({ writ }) => writ)).size).toBe(6);
  });

  it('waits while tokens are not valid yet, and continues once the clocks agree (BD-3)', async () => {
    const world = await startWorld();
    const tooEarly = () =>
      new UnauthenticatedError('TOKEN_INVALID', 'It was issued in the future.', { check: 'iat' });
    world.faults.failAt('before review op-2', ...Array.from({ length: 5 }, tooEarly));
    world.faults.failAt('before generate op-3', ...Array.from({ length: 5 }, tooEarly));
    await world.startWorker();
    await world.deliver();
    const { stopReason, epoch } = await world.until('COMPLETED');
    expect({ stopReason, epoch }).toEqual({ stopReason: 'success', epoch: 1n });
    expect(world.supervisor.reports).toEqual([]);
  });
});
