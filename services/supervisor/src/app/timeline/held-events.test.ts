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
      held.hold(keyOf(run), [event(`run-${run}`, 'a', 400), event(`run-${run}`, 'b', 400)]);
    }
    const runs = held.runs().map(({ runId }) => runId);
    expect(runs).toHaveLength(19);
    expect(runs.at(-1)).toBe('run-29');
    expect(held.of(keyOf(0))).toEqual([]);
    expect(held.of(keyOf(29)).map(({ eventId }) => eventId)).toEqual(['a', 'b']);
  });

  it('of a run that exceeds the limit on its own are dropped, while events of other runs are kept (CO-2)', () => {
    const held = new HeldEvents();
    held.hold(keyOf(0), [event('run-0', 'a', 1)]);
    const many = Array.from({ length: 3 }, (_, n) => event('run-1', `${n}`, 400));
    held.hold(keyOf(1), many);
    expect(held.runs()).toEqual([keyOf(0)]);
  });

  it('of a worker replace no event of another emitter with the same id (HK-1, SYS-6)', () => {
    const held = new HeldEvents();
    const by = (emitter: string) => ({ ...event('run-1', 'a', 0), emitter });
    held.hold(keyOf(1), [by('execution-meter')]);
    held.hold(keyOf(1), [by('agent-worker')]);
    expect(held.of(keyOf(1)).map(({ emitter }) => emitter)).toEqual([
      'execution-meter',
      'agent-worker',
    ]);
  });

  it('of a run are dropped when they name too many predecessors, because each attempt to record them looks up all (SYS-6, CO-2)', () => {
    const held = new HeldEvents();
    const after = Array.from({ length: 2_048 }, (_, n) => `${n}`);
    const naming = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ ...event('run-1', `${n}`, 0), after }));
    held.hold(keyOf(1), naming(2));
    expect(held.of(keyOf(1))).toHaveLength(2);
    held.hold(keyOf(1), naming(3));
    expect(held.of(keyOf(1))).toEqual([]);
  });
});
