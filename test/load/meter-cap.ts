import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type HookEvent, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { isWritError } from '@writ/kernel';
import { generate } from './generate.ts';
import { type Agent, type MeterStage, TENTH } from './meter-stage.ts';
import { seeded } from './random.ts';

const CAP = 5_000_000_000n;
const MOST = Number(CAP / TENTH);

/** How much is asked for, and how often the meter is killed meanwhile. */
export interface MeterCapOptions {
  readonly calls: number;
  /** Rounds, each a run of its own, in which the meter is killed; none means one round without. */
  readonly kills?: { readonly rounds: number; readonly seed: number };
}

/** What happened in one round. */
interface Round {
  readonly answered: number;
  readonly refused: number;
  readonly attempts: number;
  readonly lost: number;
  readonly reached: number;
}

/**
 * Many concurrent calls of $0.10 against a cap of $5.00 (EM-3): at most 50 reach the provider, the tab
 * never exceeds the cap at any event, nothing stays reserved; and, when the meter is killed in between,
 * what was sent and never answered stays on the tab (EM-7).
 */
export async function meterCap(stage: MeterStage, { calls, kills }: MeterCapOptions) {
  const random = seeded(kills?.seed ?? 0);
  const rounds: Round[] = [];
  for (let round = 0; round < (kills?.rounds ?? 1); round += 1) {
    const agent = { runId: `cap-${calls}-${kills?.rounds ?? 0}-${round}`, instance: 'desk-1' };
    await stage.openTab(agent, CAP);
    const reachedBefore = stage.simulator.requests().length;
    const asked = askAll(stage, agent, calls);
    if (kills !== undefined) await killSomewhere(stage, reachedBefore, random);
    const outcomes = await asked;
    rounds.push(await check(stage, agent, outcomes, reachedBefore));
  }
  const sum = (figure: keyof Round): number =>
    rounds.reduce((total, round) => total + round[figure], 0);
  if (kills === undefined) assert.equal(sum('reached'), MOST);
  return {
    rounds: rounds.length,
    'most that reached the provider': Math.max(...rounds.map(({ reached }) => reached)),
    attempts: sum('attempts'),
    answered: sum('answered'),
    refused: sum('refused'),
    'lost with the meter, on the tab': sum('lost'),
  };
}

/** All calls at once, each until it is answered or refused; answers with how many were answered. */
async function askAll(stage: MeterStage, agent: Agent, calls: number): Promise<readonly boolean[]> {
  const options = await stage.credentials(agent);
  const ask = async (callId: string): Promise<boolean> => {
    for (;;) {
      const { models } = await stage.up();
      try {
        await generate(models, { callId, model: 'tenth' }, options);
        return true;
      } catch (error) {
        if (!isWritError(error)) throw error;
        if (error.reason === 'BUDGET_EXHAUSTED') return false;
        // The process is gone; the next one is not up yet when it was the kill that ended the call.
        if (error.kind !== 'unavailable') throw error;
        await sleep(5);
      }
    }
  };
  return await Promise.all(Array.from({ length: calls }, (_, index) => ask(`op-${index}`)));
}

/** Kills the meter some time after the provider got some request of this round. */
async function killSomewhere(
  stage: MeterStage,
  reachedBefore: number,
  random: () => number,
): Promise<void> {
  const after = Math.floor(random() * 30);
  if (after > 0) await stage.simulator.until(({ call }) => call >= reachedBefore + after);
  await sleep(random() * 12);
  await stage.crash();
}

async function check(
  stage: MeterStage,
  agent: Agent,
  outcomes: readonly boolean[],
  reachedBefore: number,
): Promise<Round> {
  const reached = stage.simulator.requests().length - reachedBefore;
  assert.ok(reached <= MOST, `${reached} calls reached the provider where the cap pays ${MOST}.`);
  const { attempts, lost } = replay(stage.events(agent.runId));
  for (const name of [BudgetLevel.AGENT, BudgetLevel.RUN]) {
    const level = await stage.level(agent, name);
    assert.equal(level.reservedCostNanoUsd, 0n, 'Something stays reserved.');
    assert.equal(level.reservedTokens, 0n, 'Something stays reserved.');
    assert.ok(name === BudgetLevel.RUN || level.usedCostNanoUsd <= CAP, 'The cap is exceeded.');
    assert.equal(level.usedCostNanoUsd, TENTH * BigInt(attempts), 'An attempt is not on the tab.');
  }
  const answered = outcomes.filter(Boolean).length;
  assert.ok(reached <= attempts, 'The provider got a call that is not on the tab.');
  assert.equal(attempts, answered + lost, 'An attempt is neither answered nor lost.');
  return { answered, refused: outcomes.length - answered, attempts, lost, reached };
}

/** Follows the tab event by event: what is held and what is spent never exceed the cap together. */
function replay(events: readonly HookEvent[]): { attempts: number; lost: number } {
  const held = new Set<string>();
  let spent = 0n;
  let lost = 0;
  let attempts = 0;
  for (const { type, callId, attempt, costNanoUsd, status } of events) {
    const name = `${callId}/${attempt}`;
    if (type === HookEventType.LLM_START) {
      attempts += 1;
      held.add(name);
    } else if (type === HookEventType.LLM_END) {
      assert.ok(held.delete(name), `${name} ended without a start.`);
      spent += costNanoUsd;
      if (status === 'interrupted') lost += 1;
    }
    const committed = spent + TENTH * BigInt(held.size);
    assert.ok(committed <= CAP, `${committed} nano-USD are committed at an event.`);
  }
  assert.equal(held.size, 0, 'An attempt never ended.');
  return { attempts, lost };
}
