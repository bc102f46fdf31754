import { Priority } from '@writ/kernel';
import { afterEach, expect, it } from 'vitest';
import { MeterWorld, type MeterWorldOptions } from './meter-fixture.ts';

let world: MeterWorld;
const start = async (options: MeterWorldOptions): Promise<void> => {
  world = await MeterWorld.start(options);
};
afterEach(() => world[Symbol.asyncDispose]());

/** The first answer takes longer than a busy machine needs to make the other calls. */
const HELD = [{ text: 'Hi.', delay_ms: 1_000 }, { text: 'Hi.' }];

/** Makes `count` concurrent calls for an agent. */
async function saturate(instance: string, priority: Priority, count: number) {
  await world.openTab({ agent: { name: 'support', instance } });
  const options = await world.credentials(instance, { priority });
  return Array.from({ length: count }, (_, index) =>
    world.generate({ callId: `op-${index}` }, options),
  );
}

it('serves agents in the ratio of their weights, and BACKGROUND last (SUP-3)', async () => {
  await start({
    scripts: { hello: [{ text: 'Hi.', delay_ms: 3 }] },
    settings: 'max_in_flight: 1',
  });
  const calls = [
    ...(await saturate('background', Priority.BACKGROUND, 5)),
    ...(await saturate('normal', Priority.NORMAL, 30)),
    ...(await saturate('critical', Priority.CRITICAL, 30)),
  ];
  const results = await Promise.all(calls);
  expect(results.every(({ error }) => error === undefined)).toBe(true);
  await expect.poll(() => world.events.length).toBe(130);
  const order = world.events
    .filter(({ name }) => name === 'LLM_START')
    .map(({ event }) => event.agent?.instance);
  const first = order.indexOf('critical');
  const last = order.lastIndexOf('critical');
  const meanwhile = order.slice(first, last + 1);
  const count = (instance: string): number => meanwhile.filter((name) => name === instance).length;
  const ratio = count('critical') / count('normal');
  expect(ratio).toBeGreaterThan(4 * 0.85);
  expect(ratio).toBeLessThan(4 * 1.15);
  expect(count('background')).toBe(0);
  expect(order.slice(-4)).toEqual(Array(4).fill('background'));
});

it('refuses calls above max_queued and reserves nothing for waiting calls (SUP-3)', async () => {
  await start({
    scripts: { hello: HELD },
    settings: 'max_in_flight: 1\n    max_queued: 2',
  });
  const calls = await saturate('support-1', Priority.NORMAL, 4);
  await world.simulator.until(({ outcome }) => outcome === 'open');
  expect((await world.level(1)).reservedTurns).toBe(1n);
  const errors = (await Promise.all(calls)).flatMap(({ error }) => error ?? []);
  expect(errors).toMatchObject([{ reason: 'MODEL_QUEUE_FULL', kind: 'resource_exhausted' }]);
  expect(errors[0]?.message).toContain('max_queued 2');
  expect(world.simulator.requests()).toHaveLength(3);
});

it('removes a cancelled call from the queue (SUP-8)', async () => {
  await start({
    scripts: { hello: HELD },
    settings: 'max_in_flight: 1',
  });
  const [running] = await saturate('support-1', Priority.NORMAL, 1);
  await world.simulator.until(({ outcome }) => outcome === 'open');
  const stop = new AbortController();
  const options = { ...(await world.credentials()), signal: stop.signal };
  const waiting = world.generate({ callId: 'op-9' }, options);
  stop.abort();
  expect((await waiting).error?.kind).toBe('cancelled');
  await running;
  expect((await world.generate({ callId: 'op-10' })).error).toBeUndefined();
  expect(world.simulator.requests()).toHaveLength(2);
});
