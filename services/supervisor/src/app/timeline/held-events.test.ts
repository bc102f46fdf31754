import { create } from '@bufbuild/protobuf';
import { type HookEvent, HookEventSchema } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { describe, expect, it } from 'vitest';
import { HeldEvents } from './held-events.ts';

const event = (runId: string, eventId: string, kilobytes: number): HookEvent =>
  create(HookEventSchema, {
    tenant: 'acme',
    runId,
    eventId,
    traceparent: 'x'.repeat(kilobytes * 1_000),
  });

const keyOf = (run: number) => ({ tenant: 'acme', runId: `run-${run}` });

describe('held events', () => {
  it('of the least recently used runs are dropped above the memory limit (HK-1, CO-2)', () => {
    const held = new HeldEvents();
    for (let run = 0; run < 30; run += 1) {
      held.hold(keyOf(run), [event(`run-${run}`, 'a', 500), event(`run-${run}`, 'b', 500)]);
    }
    const runs = held.runs().map(({ runId }) => runId);
    expect(runs).toHaveLength(15);
    expect(runs.at(-1)).toBe('run-29');
    expect(held.of(keyOf(0))).toEqual([]);
    expect(held.of(keyOf(29)).map(({ eventId }) => eventId)).toEqual(['a', 'b']);
  });

  it('of a run that exceeds the limit on its own are dropped, while events of other runs are kept (CO-2)', () => {
    const held = new HeldEvents();
    held.hold(keyOf(0), [event('run-0', 'a', 1)]);
    const many = Array.from({ length: 20 }, (_, n) => event('run-1', `${n}`, 1_000));
    held.hold(keyOf(1), many);
    expect(held.runs()).toEqual([keyOf(0)]);
  });
});
