import { expect, it } from 'vitest';
import { TestRun } from './test-run.ts';
import { World } from './world.ts';

it('keeps the pool of an ended run for the retention time, then deletes it with its recorded answers', async () => {
  const world = await World.start({ config: { sweepMs: 1, keepClosedMs: 60_000 } });
  const run = new TestRun(world);
  await run.open();
  await run.acquire('a');
  await run.close();
  world.advance(59_000);
  expect((await run.pool()).closed).toBe(true);
  world.advance(2_000);
  const notFound = { reason: 'POOL_NOT_FOUND' };
  await expect.poll(() => run.pool().catch(({ reason }) => ({ reason }))).toEqual(notFound);
  // The same requests in a run of the same name are new requests.
  await run.open();
  await run.acquire('a');
  await world.stop();
});
