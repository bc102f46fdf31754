import { describe, expect, it, vi } from 'vitest';
import { llmEnd, runEnd, watched } from '../test/hook-events.ts';
import { CostTracker } from './cost-tracker.ts';
import { type HookContext, toHookContext } from './hook-context.ts';

describe('HookManager', () => {
  it('calls the callbacks of an event, sync and async, at the same time (HK-3)', async () => {
    const { manager, problems } = watched();
    const both = Promise.withResolvers<void>();
    const seen: string[] = [];
    manager.on('LLM_END', async () => {
      seen.push('first');
      await both.promise;
    });
    manager.on('LLM_END', () => {
      seen.push('second');
      both.resolve();
    });
    manager.on('LLM_START', () => seen.push('another event'));
    await manager.dispatch(toHookContext(llmEnd('e1')));
    expect(seen).toEqual(['first', 'second']);
    expect(problems).toEqual([]);
  });

  it('reports a callback that threw, and calls the others (HK-3)', async () => {
    const { manager, problems } = watched();
    const after = vi.fn();
    manager.on('LLM_END', function broken() {
      throw new Error('no disk');
    });
    manager.on('LLM_END', async function brokenLater() {
      await Promise.resolve();
      throw new Error('no net');
    });
    manager.on('LLM_END', after);
    await manager.dispatch(toHookContext(llmEnd('e1')));
    expect(after).toHaveBeenCalledOnce();
    expect(problems).toMatchObject([
      { callback: 'broken', event: 'LLM_END', event_id: 'e1', error: { message: 'no disk' } },
      { callback: 'brokenLater', error: { message: 'no net' } },
    ]);
  });

  it('reports the callbacks of an observer by their names (HK-3)', async () => {
    const { manager, problems } = watched();
    function broken(): never {
      throw new Error('no disk');
    }
    manager.register({ RUN_END: broken });
    manager.register(new CostTracker(broken).hooks);
    await manager.dispatch(toHookContext(runEnd('writer')));
    expect(problems.map(({ callback }) => callback)).toEqual(['broken', 'costTracker']);
  });

  it('does not wait for a callback that hangs, even if it fails later (HK-3)', async () => {
    const { manager, problems } = watched({ timeoutMs: 1 });
    const hanging = Promise.withResolvers<void>();
    manager.on('LLM_END', () => hanging.promise);
    await manager.dispatch(toHookContext(llmEnd('e1')));
    hanging.reject(new Error('too late'));
    await Promise.resolve();
    expect(problems).toEqual([{ event: 'LLM_END', event_id: 'e1', callback: 'anonymous' }]);
  });

  it('passes a deeply frozen context (HK-3)', async () => {
    const { manager, problems } = watched();
    manager.on('LLM_END', (context) => {
      Object.assign(context, { run_id: 'run-2' });
    });
    manager.on('LLM_END', ({ usage }) => {
      Object.assign(usage ?? {}, { input_tokens: 0 });
    });
    const seen: HookContext[] = [];
    manager.on('LLM_END', (context) => seen.push(context));
    await manager.dispatch(toHookContext(llmEnd('e1')));
    expect(problems.map(({ error }) => error)).toEqual([
      expect.any(TypeError),
      expect.any(TypeError),
    ]);
    expect(seen).toMatchObject([{ run_id: 'run-1', usage: { input_tokens: 100 } }]);
  });

  it('dispatches only events of the configured agent, if an agent is configured (HK-3)', async () => {
    const { manager } = watched({ agent: 'writer' });
    const seen: (string | undefined)[] = [];
    manager.on('LLM_END', ({ agent_id }) => seen.push(agent_id));
    await manager.dispatch(toHookContext(llmEnd('e1', 'reader')));
    await manager.dispatch(toHookContext(llmEnd('e2', 'writer')));
    expect(seen).toEqual(['writer-1']);
  });

  it('unregisters callbacks (HK-3)', async () => {
    const { manager } = watched();
    const [on, registered] = [vi.fn(), vi.fn()];
    const ends = [manager.on('LLM_END', on), manager.register({ LLM_END: registered })];
    for (const end of ends) end();
    await manager.dispatch(toHookContext(llmEnd('e1')));
    expect(on).not.toHaveBeenCalled();
    expect(registered).not.toHaveBeenCalled();
  });
});
