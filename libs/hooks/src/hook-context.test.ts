import { HookEventSchema, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import { describe, expect, it } from 'vitest';
import { hook } from '../test/hook-events.ts';
import { toHookContext } from './hook-context.ts';

describe('toHookContext', () => {
  it('contains the ids and numbers of the event and omits unset fields (HK-1)', () => {
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

  it('has every field of the contract, deeply frozen (HK-3, PE-4)', () => {
    const context = toHookContext(
      hook({
        eventId: 'e1',
        type: HookEventType.BUDGET_THRESHOLD,
        eventTime: { seconds: 1n },
        sessionId: 'session-1',
        agent: { name: 'writer', instance: 'writer-1' },
        step: 2,
        callId: 'op-1',
        traceparent: '00-1-2-01',
        toolName: 'search',
        model: 'small',
        status: 'ok',
        duration: { seconds: 1n },
        usage: { inputTokens: 1n },
        costNanoUsd: 1n,
        estimated: true,
        attempt: 1,
        approvalId: 'apr-1',
        haltId: 'halt-1',
        otherAgent: { name: 'reader', instance: 'reader-1' },
        dimension: 'cost',
        argsSha256: '5d41402a',
        waitingFor: 'user:anna',
        after: ['e0'],
        slotSequence: 7n,
        logMessage: 'hitl.question',
        auditCheckpoint: { number: 1n, count: 2n, signed: 'jws' },
        thresholdPercent: 80,
        budgetLevel: BudgetLevel.TENANT_DAY,
      }),
    );
    const renamed = new Map([
      ['type', 'event'],
      ['event_time', 'at'],
      ['agent', 'agent_id'],
      ['duration', 'duration_ms'],
      ['other_agent', 'other_agent_id'],
    ]);
    const fields = HookEventSchema.fields.map(({ name }) => renamed.get(name) ?? name);
    expect(Object.keys(context)).toEqual(expect.arrayContaining(fields));
    expect(context).toMatchObject({
      after: ['e0'],
      slot_sequence: 7,
      log_message: 'hitl.question',
      threshold_percent: 80,
      budget_level: 'tenant_day',
    });
    expect(Object.values(context).every(Object.isFrozen)).toBe(true);
  });

  it('rejects an event of an unknown type (HK-1)', () => {
    expect(() => toHookContext(hook({ eventId: 'e1', type: 99 as HookEventType }))).toThrow(
      'type 99 of event e1',
    );
  });
});
