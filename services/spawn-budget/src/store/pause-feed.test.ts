import { describe, expect, it } from 'vitest';
import type { SlotState } from '../domain/pool/pool.ts';
import type { Move } from './move.ts';
import { PauseFeed } from './pause-feed.ts';

function move(sequence: number, from: SlotState, to: SlotState, tenant = 'acme'): Move {
  const agent = { name: 'child', instance: `a-${sequence}` };
  return { tenant, runId: 'run-1', change: { agent, from, to, sequence }, at: new Date(0) };
}

async function sequences(watch: AsyncIterable<Move>): Promise<number[]> {
  const seen: number[] = [];
  for await (const { change } of watch) seen.push(change.sequence);
  return seen;
}

describe('a watch of pauses', () => {
  it('sees who was paused and who got a slot back, of its tenants (SB-4)', async () => {
    const feed = new PauseFeed();
    const watch = feed.watch(['acme'], new AbortController().signal);
    const first = watch.next();
    feed.announce([
      move(1, 'active', 'waiting'),
      move(2, 'suspended', 'active'),
      move(3, 'active', 'paused', 'globex'),
      move(4, 'active', 'paused'),
      move(5, 'waiting', 'active'),
      move(6, 'paused', 'active'),
    ]);
    expect((await first).value?.change.sequence).toBe(4);
    expect((await watch.next()).value?.change.sequence).toBe(5);
    expect((await watch.next()).value?.change.sequence).toBe(6);
    const pending = sequences(watch);
    feed.close();
    expect(await pending).toEqual([]);
  });

  it('that is slow misses the oldest, and takes no more memory than for the rest (SB-4)', async () => {
    const feed = new PauseFeed();
    const stop = new AbortController();
    const watch = feed.watch(['acme'], stop.signal);
    const first = watch.next();
    feed.announce([move(0, 'active', 'paused')]);
    await first;
    for (let sequence = 1; sequence <= 1_500; sequence += 1)
      feed.announce([move(sequence, 'active', 'paused')]);
    expect((await watch.next()).value?.change.sequence).toBe(501);
    stop.abort();
    expect(await sequences(watch)).toEqual([]);
  });
});
