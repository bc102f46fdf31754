import { expect, it, vi } from 'vitest';
import { World } from './world.ts';

const ESCALATE =
  '{"kind":"tool","name":"issue_refund","args":{"user_id":42,"amount_usd":1200,"reason":"x"}}';

it('a worker with free sessions does not poll its store on a delivery or at the end of an agent (RT-2)', async () => {
  const world = await World.start();
  const { store } = await world.startWorker({ pollMs: 3_600_000 });
  const selects = vi.spyOn(store.db, 'selectFrom');
  // Each poll reads the next timer once; running agents do not read timers.
  const polls = () => selects.mock.calls.filter(([table]) => String(table) === 'timers').length;
  world.meter.model = (_, { callId: id }) =>
    JSON.stringify({ kind: 'tool', name: 'no_such_tool', args: { id } });
  for (const runId of ['run-1', 'run-2', 'run-3']) {
    await world.deliver({ runId });
    await world.until('BLOCKED', runId);
  }
  // The worker polls at most once, when it starts.
  expect(polls()).toBeLessThanOrEqual(1);
  // The worker polls after a suspension, because the agent may be due at once.
  world.meter.model = () => ESCALATE;
  const before = polls();
  await world.deliver({ runId: 'run-4' });
  await world.until('SUSPENDED', 'run-4');
  await vi.waitFor(() => expect(polls()).toBe(before + 1));
});
