import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import type { ErrorKind } from '@writ/kernel';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AGENT, MeterWorld, RUN, TENANT } from './meter-fixture.ts';
import { PRICES, reference } from './models-yaml.ts';

const SIM = `base_url: "${reference('SIM_URL')}", model: "sim:hello", max_output_tokens: 100`;
const MODELS = [
  'models:',
  `  hello: { ${SIM}, api_key_env: SIM_KEY, ${PRICES} }`,
  `  extra: { ${SIM}, api_key_env: NOT_SET, ${PRICES} }`,
  `  priceless: { ${SIM}, api_key_env: SIM_KEY, priced_as: unknown-to-the-price-list }`,
].join('\n');

let world: MeterWorld;
beforeEach(async () => {
  world = await MeterWorld.start({
    scripts: { hello: [{ garbage: '<html>Bad gateway</html>' }], priceless: [{ text: 'x' }] },
    models: MODELS,
  });
  await world.openTab({ budget: { maxTokens: 1_000n, maxCostNanoUsd: 10_000_000n } });
});
afterEach(() => world[Symbol.asyncDispose]());

const tab = { tenant: TENANT, runId: RUN, agentInstance: AGENT };
const reserve = (callId: string, tokens = 10n, of = tab) =>
  world.tab.reserve({ tab: of, callId, tokens, costNanoUsd: 10n, turns: 1n });
const settle = (callId: string, inputTokens: bigint) =>
  world.tab.settle({ tab, callId, usage: { inputTokens }, costNanoUsd: 10n, turns: 1n });

/** Makes a model call; throws the error that it ends with. */
async function ask(callId: string, model: string): Promise<void> {
  const { error } = await world.generate({ callId, model });
  if (error !== undefined) throw error;
}

const CASES: readonly {
  readonly what: string;
  readonly kind: ErrorKind;
  readonly reason: string;
  readonly sentence: RegExp;
  attempt(): Promise<unknown>;
}[] = [
  {
    what: 'a negative number',
    kind: 'invalid_argument',
    reason: 'INVALID_FIELD',
    sentence: /^tokens: /,
    attempt: () => reserve('bad', -1n),
  },
  {
    what: 'an absurd number',
    kind: 'invalid_argument',
    reason: 'INVALID_FIELD',
    sentence: /^tokens: /,
    attempt: () => reserve('bad', 2n ** 62n),
  },
  {
    what: 'absurd usage',
    kind: 'invalid_argument',
    reason: 'INVALID_USAGE',
    sentence: /^usage\.input_tokens must be from 0 to/,
    attempt: () => settle('held', -1n),
  },
  {
    what: 'an unknown tab',
    kind: 'not_found',
    reason: 'TAB_NOT_FOUND',
    sentence: /^Agent missing of run run-1 has no tab\.$/,
    attempt: () => reserve('bad', 1n, { ...tab, agentInstance: 'missing' }),
  },
  {
    what: 'a settlement without a reservation',
    kind: 'not_found',
    reason: 'RESERVATION_NOT_FOUND',
    sentence: /^The tab has no reservation/,
    attempt: () => settle('bad', 1n),
  },
  {
    what: 'an unknown model',
    kind: 'not_found',
    reason: 'UNKNOWN_MODEL',
    sentence: /unknown/,
    attempt: () => ask('bad', 'unknown'),
  },
  {
    what: 'a missing price under a cost cap',
    kind: 'failed_precondition',
    reason: 'PRICE_MISSING',
    sentence: /priceless/,
    attempt: () => ask('bad', 'priceless'),
  },
  {
    what: 'a provider key that is not set',
    kind: 'failed_precondition',
    reason: 'PROVIDER_KEY_MISSING',
    sentence: /NOT_SET/,
    attempt: () => ask('bad', 'extra'),
  },
];

describe('bad input', () => {
  it.each(CASES)(
    '– $what – has a specific reason and message, and leaves the ledger unchanged (EM-3, SYS-3)',
    async ({ attempt, kind, reason, sentence }) => {
      await reserve('held', 40n);
      const before = await world.level(BudgetLevel.AGENT);
      await expect(attempt()).rejects.toMatchObject({
        kind,
        reason,
        message: expect.stringMatching(sentence),
      });
      expect(await world.level(BudgetLevel.AGENT)).toEqual(before);
      await settle('held', 30n);
      expect(await world.level(BudgetLevel.RUN)).toMatchObject({
        usedTokens: 30n,
        reservedTokens: 0n,
      });
    },
  );

  it('– an invalid answer – fails the call with PROVIDER_ERROR and books the attempt (EM-8, SYS-3)', async () => {
    await expect(ask('op-1', 'hello')).rejects.toMatchObject({
      reason: 'PROVIDER_ERROR',
      metadata: { stop_reason: 'provider_error:bad_response' },
    });
    const level = await world.level(BudgetLevel.AGENT);
    expect(level.usedTokens).toBeGreaterThan(0n);
    expect(level).toMatchObject({ reservedTokens: 0n, usedTurns: 1n });
  });

  it('– a settlement above its reservation – is booked, flagged, and included in the next cap check (EM-3)', async () => {
    await reserve('op-1', 10n);
    const { reservation } = await settle('op-1', 1_500n);
    expect(reservation?.exceeded).toBe(true);
    await expect(reserve('op-2', 1n)).rejects.toMatchObject({ reason: 'BUDGET_EXHAUSTED' });
    expect(await world.level(BudgetLevel.AGENT)).toMatchObject({
      usedTokens: 1_500n,
      debtTokens: 1_490n,
      reservedTokens: 0n,
    });
  });

  it('– a closed tab – rejects reservations and accepts settlements of earlier reservations (EM-3)', async () => {
    await reserve('op-1', 10n);
    await world.tab.closeTab({ tab, requestId: 'close' });
    await expect(reserve('op-2', 1n)).rejects.toMatchObject({
      reason: 'TAB_CLOSED',
      message: 'The tab is closed and accepts no calls.',
    });
    await settle('op-1', 10n);
    expect(await world.level(BudgetLevel.AGENT)).toMatchObject({
      usedTokens: 10n,
      reservedTokens: 0n,
    });
  });
});
