import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { isWritError } from '@writ/kernel';
import { generate } from './generate.ts';
import { type MeterStage, TENANT } from './meter-stage.ts';

/**
 * A worker aborts a stream (EM-8, EM-9): the provider's connection closes at once, long before the answer
 * would end, and a settled, estimated entry is left. Tells how long it took until the provider saw it.
 */
export async function streamAbort(stage: MeterStage, { times }: { readonly times: number }) {
  const { models, tabs } = await stage.up();
  const agent = { runId: `abort-${times}`, instance: 'desk-1' };
  await stage.openTab(agent);
  const credentials = await stage.credentials(agent);
  const delays: number[] = [];
  for (let time = 0; time < times; time += 1) {
    const callId = `op-${time}`;
    const requestId = stage.requestId(agent, callId);
    const stop = new AbortController();
    const options = { ...credentials, signal: stop.signal };
    const call = generate(models, { callId, model: 'endless' }, options).catch(
      (error: unknown) => error,
    );
    const begun = stage.simulator.until(({ request_id }) => request_id === requestId);
    await Promise.race([begun, call]);
    await sleep(30);
    const at = performance.now();
    stop.abort();
    const seen = await stage.simulator.until(
      ({ request_id, outcome }) => request_id === requestId && outcome !== 'open',
    );
    delays.push(performance.now() - at);
    assert.equal(seen.outcome, 'aborted');
    const error = await call;
    assert.ok(isWritError(error) && error.kind === 'cancelled', String(error));
  }
  await untilNothingReserved(stage, agent);
  const { tab } = await tabs.getTab({
    tab: { tenant: TENANT, runId: agent.runId, agentInstance: agent.instance },
  });
  assert.equal(tab?.totals?.turns, BigInt(times));
  assert.equal(tab.totals.estimatedTurns, BigInt(times), 'An aborted stream is not estimated.');
  assert.ok(tab.totals.costNanoUsd > 0n, 'What had come is not on the tab.');
  delays.sort((a, b) => a - b);
  return {
    times,
    'median ms until the provider saw it': delays[Math.floor(times / 2)]?.toFixed(1),
    'at most ms': delays.at(-1)?.toFixed(1),
  };
}

async function untilNothingReserved(
  stage: MeterStage,
  agent: { readonly runId: string; readonly instance: string },
): Promise<void> {
  for (let tries = 0; tries < 500; tries += 1) {
    const { reservedTokens } = await stage.level(agent, BudgetLevel.AGENT);
    if (reservedTokens === 0n) return;
    await sleep(10);
  }
  throw new Error('What was aborted stays reserved.');
}
