import assert from 'node:assert/strict';
import { Priority } from '@writ/kernel';
import { generate } from './generate.ts';
import type { MeterHarness } from './meter-harness.ts';

const WEIGHTS = {
  critical: Priority.CRITICAL,
  normal: Priority.NORMAL,
  background: Priority.BACKGROUND,
} as const;

type Name = keyof typeof WEIGHTS;

/** Concurrent calls of each of the two saturating agents. */
const CONCURRENCY = 12;
const BACKGROUND_CALLS = 10;

/**
 * CRITICAL and NORMAL saturate a model with one slot (SUP-3). The provider receives their calls in the ratio
 * of their weights, within 15 %. BACKGROUND receives no slot until both are idle.
 */
export async function modelShare(harness: MeterHarness, { forMs }: { readonly forMs: number }) {
  const { models } = await harness.running();
  const runId = `share-${forMs}`;
  const names = new Map<string, Name>();
  const callerOf = async (name: Name): Promise<() => Promise<void>> => {
    const agent = { runId, instance: name };
    await harness.openTab(agent);
    const credentials = await harness.credentials(agent, { priority: WEIGHTS[name] });
    let calls = 0;
    return async () => {
      calls += 1;
      const callId = `op-${calls}`;
      names.set(harness.requestId(agent, callId), name);
      await generate(models, { callId, model: 'slot' }, credentials);
    };
  };
  const [critical, normal, background] = await Promise.all([
    callerOf('critical'),
    callerOf('normal'),
    callerOf('background'),
  ]);
  const started = performance.now();
  const saturate = (call: () => Promise<void>): Promise<void>[] =>
    Array.from({ length: CONCURRENCY }, async () => {
      while (performance.now() - started < forMs) await call();
    });
  const saturated = Promise.all([...saturate(critical), ...saturate(normal)]);
  const begun = harness.simulator.until(({ request_id }) => names.has(request_id ?? ''));
  await Promise.race([begun, saturated]);
  const idle = Array.from({ length: BACKGROUND_CALLS }, background);
  await Promise.all([saturated, ...idle]);

  const order = harness.simulator
    .requests()
    .map(({ request_id }) => names.get(request_id ?? ''))
    .filter((name) => name !== undefined);
  // When one of the two has no more calls, the other one gets every slot.
  const end = Math.min(order.lastIndexOf('critical'), order.lastIndexOf('normal'));
  const saturation = order.slice(order.indexOf('critical'), end);
  const count = (name: Name): number => saturation.filter((other) => other === name).length;
  const ratio = count('critical') / count('normal');
  const wanted = Priority.CRITICAL / Priority.NORMAL;
  assert.ok(Math.abs(ratio / wanted - 1) <= 0.15, `The ratio is ${ratio}; expected ${wanted}.`);
  assert.equal(count('background'), 0, 'BACKGROUND got a slot during saturation.');
  assert.equal(order.filter((name) => name === 'background').length, BACKGROUND_CALLS);
  return {
    CRITICAL: count('critical'),
    NORMAL: count('normal'),
    ratio,
    'BACKGROUND during saturation': count('background'),
    'BACKGROUND afterwards': BACKGROUND_CALLS,
  };
}
