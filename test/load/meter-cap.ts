import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type HookEvent, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { isWritError } from '@writ/kernel';
import { seeded } from '@writ/testing/random';
import { generate } from './generate.ts';
import { type Agent, type MeterHarness, TENTH } from './meter-harness.ts';

const CAP = 5_000_000_000n;
const MAX_CALLS = Number(CAP / TENTH);

/** Options of the cap test. */
export interface MeterCapOptions {
  readonly calls: number;
  /** Each round is a run during which the meter is killed; default one round without a kill. */
  readonly kills?: { readonly rounds: number; readonly seed: number };
}

/** The figures of one round. */
interface Round {
  readonly answered: number;
  readonly refused: number;
  readonly attempts: number;
  readonly lost: number;
  readonly reached: number;
  /** Sum of the tokens and the nano-USD that are reserved at the end; must be 0. */
  readonly reserved: bigint;
}

/**
 * Makes many concurrent calls of $0.10 against a cap of $5.00 (EM-3). At most 50 reach the provider, the tab
 * never exceeds the cap at any event, and no reservation remains. When the meter is killed in between,
 * requests that were sent and never answered stay on the tab (EM-7).
 */
export async function meterCap(harness: MeterHarness, { calls, kills }: MeterCapOptions) {
  const random = seeded(kills?.seed ?? 0);
  const rounds: Round[] = [];
  for (let round = 0; round < (kills?.rounds ?? 1); round += 1) {
    const agent = { runId: `cap-${calls}-${kills?.rounds ?? 0}-${round}`, instance: 'payer-1' };
    await harness.openTab(agent, CAP);
    const reachedBefore = harness.simulator.requests().length;
    const pending = callAll(harness, agent, calls);
    if (kills !== undefined) await killAtRandom(harness, reachedBefore, random);
    const outcomes = await pending;
    rounds.push(await check(harness, agent, outcomes, reachedBefore));
  }
  const sum = (figure: keyof Omit<Round, 'reserved'>): number =>
    rounds.reduce((total, round) => total + round[figure], 0);
  if (kills === undefined) assert.equal(sum('reached'), MAX_CALLS);
  return {
    rounds: rounds.length,
    'calls that the cap covers': MAX_CALLS,
    'most calls that reached the provider': Math.max(...rounds.map(({ reached }) => reached)),
    attempts: sum('attempts'),
    answered: sum('answered'),
    refused: sum('refused'),
    'lost with the meter and charged': sum('lost'),
    'still reserved': rounds.reduce((total, { reserved }) => total + reserved, 0n),
  };
}

/** Makes all calls concurrently and retries each until it is answered or refused. */
async function callAll(
  harness: MeterHarness,
  agent: Agent,
  calls: number,
): Promise<readonly boolean[]> {
  const options = await harness.credentials(agent);
  const call = async (callId: string): Promise<boolean> => {
    for (;;) {
      const { models } = await harness.running();
      try {
        await generate(models, { callId, model: 'tenth' }, options);
        return true;
      } catch (error) {
        if (!isWritError(error)) throw error;
        if (error.reason === 'BUDGET_EXHAUSTED') return false;
        // The process was killed, and the next one does not serve yet.
        if (error.kind !== 'unavailable') throw error;
        await sleep(5);
      }
    }
  };
  return await Promise.all(Array.from({ length: calls }, (_, index) => call(`op-${index}`)));
}

/** Kills the meter after the provider has received a random number of requests of this round. */
async function killAtRandom(
  harness: MeterHarness,
  reachedBefore: number,
  random: () => number,
): Promise<void> {
  const after = Math.floor(random() * 30);
  if (after > 0) await harness.simulator.until(({ call }) => call >= reachedBefore + after);
  await sleep(random() * 12);
  await harness.crash();
}

async function check(
  harness: MeterHarness,
  agent: Agent,
  outcomes: readonly boolean[],
  reachedBefore: number,
): Promise<Round> {
  const reached = harness.simulator.requests().length - reachedBefore;
  assert.ok(
    reached <= MAX_CALLS,
    `${reached} calls reached the provider; the cap covers ${MAX_CALLS}.`,
  );
  const { attempts, lost } = replay(harness.events(agent.runId));
  let reserved = 0n;
  for (const name of [BudgetLevel.AGENT, BudgetLevel.RUN]) {
    const level = await harness.level(agent, name);
    assert.equal(level.reservedCostNanoUsd, 0n, 'Cost stays reserved.');
    assert.equal(level.reservedTokens, 0n, 'Tokens stay reserved.');
    reserved += level.reservedCostNanoUsd + level.reservedTokens;
    assert.ok(name === BudgetLevel.RUN || level.usedCostNanoUsd <= CAP, 'The cap is exceeded.');
    assert.equal(level.usedCostNanoUsd, TENTH * BigInt(attempts), 'An attempt is not on the tab.');
  }
  const answered = outcomes.filter(Boolean).length;
  assert.ok(reached <= attempts, 'The provider got a call that is not on the tab.');
  assert.equal(attempts, answered + lost, 'An attempt is neither answered nor lost.');
  return { answered, refused: outcomes.length - answered, attempts, lost, reached, reserved };
}

/** Replays the events of the tab: reserved and spent cost together never exceed the cap. */
function replay(events: readonly HookEvent[]): { attempts: number; lost: number } {
  const reserved = new Set<string>();
  let spent = 0n;
  let lost = 0;
  let attempts = 0;
  for (const { type, callId, attempt, costNanoUsd, status } of events) {
    const name = `${callId}/${attempt}`;
    if (type === HookEventType.LLM_START) {
      attempts += 1;
      reserved.add(name);
    } else if (type === HookEventType.LLM_END) {
      assert.ok(reserved.delete(name), `${name} ended without a start.`);
      spent += costNanoUsd;
      if (status === 'interrupted') lost += 1;
    }
    const committed = spent + TENTH * BigInt(reserved.size);
    assert.ok(committed <= CAP, `${committed} nano-USD are committed after an event.`);
  }
  assert.equal(reserved.size, 0, 'An attempt never ended.');
  return { attempts, lost };
}
