import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { isWritError } from '@writ/kernel';
import { generate } from './generate.ts';
import { type MeterHarness, TENANT } from './meter-harness.ts';

/**
 * Aborts streams (EM-8, EM-9): the connection to the provider closes at once, long before the answer would
 * end, and the meter settles an estimate on the tab. Measures the latency until the provider sees the abort.
 */
export async function streamAbort(harness: MeterHarness, { times }: { readonly times: number }) {
  const { models, tabs } = await harness.running();
  const agent = { runId: `abort-${times}`, instance: 'payer-1' };
  await harness.openTab(agent);
  const credentials = await harness.credentials(agent);
  const delays: number[] = [];
  let aborted = 0;
  for (let time = 0; time < times; time += 1) {
    const callId = `op-${time}`;
    const requestId = harness.requestId(agent, callId);
    const stop = new AbortController();
    const options = { ...credentials, signal: stop.signal };
    const begun = Promise.withResolvers<void>();
    const streamed = { callId, model: 'endless', onDelta: () => begun.resolve() };
    const call = generate(models, streamed, options).catch((error: unknown) => error);
    await Promise.race([begun.promise, call]);
    const at = performance.now();
    stop.abort();
    const seen = await harness.simulator.until(
      ({ request_id, outcome }) => request_id === requestId && outcome !== 'open',
    );
    delays.push(performance.now() - at);
    assert.equal(seen.outcome, 'aborted');
    aborted += 1;
    const error = await call;
    assert.ok(isWritError(error) && error.kind === 'cancelled', String(error));
  }
  await untilNothingReserved(harness, agent);
  const { tab } = await tabs.getTab({
    tab: { tenant: TENANT, runId: agent.runId, agentInstance: agent.instance },
  });
  assert.equal(tab?.totals?.turns, BigInt(times));
  assert.equal(tab.totals.estimatedTurns, BigInt(times), 'An aborted stream has no estimate.');
  assert.ok(tab.totals.costNanoUsd > 0n, 'The received output is not on the tab.');
  delays.sort((a, b) => a - b);
  return {
    times,
    'aborted at the provider': aborted,
    'estimated turns': Number(tab.totals.estimatedTurns),
    'still reserved': (await harness.level(agent, BudgetLevel.AGENT)).reservedTokens,
    'median latency, ms': delays[Math.floor(times / 2)]?.toFixed(1),
    'maximum latency, ms': delays.at(-1)?.toFixed(1),
  };
}

async function untilNothingReserved(
  harness: MeterHarness,
  agent: { readonly runId: string; readonly instance: string },
): Promise<void> {
  for (let tries = 0; tries < 500; tries += 1) {
    const { reservedTokens } = await harness.level(agent, BudgetLevel.AGENT);
    if (reservedTokens === 0n) return;
    await sleep(10);
  }
  throw new Error('Tokens of an aborted stream stay reserved.');
}
