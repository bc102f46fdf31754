import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { describe, expect, it } from 'vitest';
import { hook } from '../test/hook-events.ts';
import { toHookContext } from './hook-context.ts';

describe('toHookContext', () => {
  it('contains the ids and numbers that the event has (HK-1)', () => {
    const context = toHookContext(
      hook({
        eventId: 'e1',
        type: HookEventType.TOOL_END,
        agent: { name: 'writer', instance: 'writer-1' },
        step: 2,
        toolName: 'search',
        argsSha256: '5d41402a',
        waitingFor: 'user:anna',
        status: 'ok',
        duration: { seconds: 1n, nanos: 500_000_000 },
      }),
    );
    expect(context).toEqual({
      event: 'TOOL_END',
      event_id: 'e1',
      emitter: 'execution-meter',
      tenant: 'acme',
      at: '',
      run_id: 'run-1',
      agent_name: 'writer',
      agent_id: 'writer-1',
      step: 2,
      tool_name: 'search',
      args_sha256: '5d41402a',
      waiting_for: 'user:anna',
      status: 'ok',
      duration_ms: 1_500,
    });
  });

  it('rejects an event of an unknown type (HK-1)', () => {
    expect(() => toHookContext(hook({ eventId: 'e1', type: 99 as HookEventType }))).toThrow(
      'type 99 of event e1',
    );
  });
});
