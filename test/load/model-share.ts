import assert from 'node:assert/strict';
import { Priority } from '@writ/kernel';
import { generate } from './generate.ts';
import type { MeterStage } from './meter-stage.ts';

const WEIGHTS = {
  critical: Priority.CRITICAL,
  normal: Priority.NORMAL,
  background: Priority.BACKGROUND,
} as const;

type Name = keyof typeof WEIGHTS;

/** Calls that each of the two saturating agents always has open. */
const OPEN = 12;
const BACKGROUND_CALLS = 10;

/**
 * CRITICAL and NORMAL saturate a model with one slot (SUP-3): the provider gets their calls in the ratio
 * of their weights, within 15 %; BACKGROUND gets none meanwhile, and all afterwards.
 */
export async function modelShare(stage: MeterStage, { forMs }: { readonly forMs: number }) {
  const { models } = await stage.up();
  const runId = `share-${forMs}`;
  const names = new Map<string, Name>();
  const callerOf = async (name: Name): Promise<() => Promise<void>> => {
    const agent = { runId, instance: name };
    await stage.openTab(agent);
    const credentials = await stage.credentials(agent, { priority: WEIGHTS[name] });
    let calls = 0;
    return async () => {
      calls += 1;
      const callId = `op-${calls}`;
      names.set(stage.requestId(agent, callId), name);
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
    Array.from({ length: OPEN }, async () => {
      while (performance.now() - started < forMs) await call();
    });
  const saturated = Promise.all([...saturate(critical), ...saturate(normal)]);
  const begun = stage.simulator.until(({ request_id }) => names.has(request_id ?? ''));
  await Promise.race([begun, saturated]);
  const patient = Array.from({ length: BACKGROUND_CALLS }, background);
  await Promise.all([saturated, ...patient]);

  const order = stage.simulator
    .requests()
    .map(({ request_id }) => names.get(request_id ?? ''))
    .filter((name) => name !== undefined);
  // Once one of the two has nothing left to ask, the other one gets every slot.
  const end = Math.min(order.lastIndexOf('critical'), order.lastIndexOf('normal'));
  const meanwhile = order.slice(order.indexOf('critical'), end);
  const count = (name: Name): number => meanwhile.filter((other) => other === name).length;
  const ratio = count('critical') / count('normal');
  const wanted = Priority.CRITICAL / Priority.NORMAL;
  assert.ok(Math.abs(ratio / wanted - 1) <= 0.15, `The ratio is ${ratio}, and not ${wanted}.`);
  assert.equal(count('background'), 0, 'BACKGROUND got a slot that others wanted.');
  assert.equal(order.filter((name) => name === 'background').length, BACKGROUND_CALLS);
  return {
    CRITICAL: count('critical'),
    NORMAL: count('normal'),
    ratio: ratio.toFixed(2),
    'BACKGROUND meanwhile': count('background'),
    'BACKGROUND afterwards': BACKGROUND_CALLS,
  };
}
