import { describe, expect, it } from 'vitest';
import type { SlotState } from '../../domain/pool/pool.ts';
import { PauseFeed, type PoolSlotChange } from './pause-feed.ts';

function change(sequence: number, from: SlotState, to: SlotState, tenant = 'acme'): PoolSlotChange {
  const agent = { name: 'child', instance: `a-${sequence}` };
  return { tenant, runId: 'run-1', change: { agent, from, to, sequence }, at: new Date(0) };
}

async function sequences(watch: AsyncIterable<PoolSlotChange>): Promise<number[]> {
  const seen: number[] = [];
  for await (const { change } of watch) seen.push(change.sequence);
  return seen;
}

describe('PauseFeed.watch', () => {
  it('delivers pauses and resumptions of the watched tenants (SB-4)', async () => {
    const feed = new PauseFeed();
    const watch = feed.watch(['acme'], new AbortController().signal);
    const first = watch.next();
    feed.publish([
      change(1, 'active', 'waiting'),
      change(2, 'suspended', 'active'),
      change(3, 'active', 'paused', 'globex'),
      change(4, 'active', 'paused'),
      change(5, 'waiting', 'active'),
      change(6, 'paused', 'active'),
    ]);
    expect((await first).value?.change.sequence).toBe(4);
    expect((await watch.next()).value?.change.sequence).toBe(5);
    expect((await watch.next()).value?.change.sequence).toBe(6);
    const pending = sequences(watch);
    feed.close();
    expect(await pending).toEqual([]);
  });

  it('drops the oldest changes of a slow watcher (SB-4)', async () => {
    const feed = new PauseFeed();
    const stop = new AbortController();
    const watch = feed.watch(['acme'], stop.signal);
    const first = watch.next();
    feed.publish([change(0, 'active', 'paused')]);
    await first;
    for (let sequence = 1; sequence <= 1_500; sequence += 1)
      feed.publish([change(sequence, 'active', 'paused')]);
    expect((await watch.next()).value?.change.sequence).toBe(501);
    stop.abort();
    expect(await sequences(watch)).toEqual([]);
  });
});
