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
 * Saturates a model that has one slot with calls of a CRITICAL and a NORMAL agent (SUP-3). The provider should receive
 * these calls in the ratio of the weights, and BACKGROUND calls only when both agents are idle.
 */
export async function modelShare(harness: MeterHarness, { calls }: { readonly calls: number }) {
  const { models } = await harness.running();
  const runId = `share-${calls}`;
  const names = new Map<string, Name>();
  const callerOf = async (name: Name): Promise<() => Promise<void>> => {
    const agent = { runId, instance: name };
    await harness.openTab(agent);
    const credentials = await harness.credentials(agent, { priority: WEIGHTS[name] });
    let made = 0;
    return async () => {
      made += 1;
      const callId = `op-${made}`;
      names.set(harness.requestId(agent, callId), name);
      await generate(models, { callId, model: 'slot' }, credentials);
    };
  };
  const [critical, normal, background] = await Promise.all([
    callerOf('critical'),
    callerOf('normal'),
    callerOf('background'),
  ]);
  let left = calls;
  const saturate = (call: () => Promise<void>): Promise<void>[] =>
    Array.from({ length: CONCURRENCY }, async () => {
      while (left > 0) {
        left -= 1;
        await call();
      }
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
  // Ignores the requests after the first agent has finished, because the other agent then gets the slot every time.
  const end = Math.min(order.lastIndexOf('critical'), order.lastIndexOf('normal'));
  const saturation = order.slice(order.indexOf('critical'), end);
  const count = (name: Name): number => saturation.filter((other) => other === name).length;
  const ratio = count('critical') / count('normal');
  return {
    CRITICAL: count('critical'),
    NORMAL: count('normal'),
    ratio,
    wanted: Priority.CRITICAL / Priority.NORMAL,
    'BACKGROUND during saturation': count('background'),
    'BACKGROUND afterwards': order.filter((name) => name === 'background').length,
  };
}
