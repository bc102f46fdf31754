import { AgentState } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { PreconditionError } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { approveAll } from './team.ts';
import { CUSTOM, llmRequest, signal, startWith } from './test-agent.ts';

const FINAL = { action: { kind: 'final', answer: 'Done.' } } as const;

describe('an agent that catches an unwinding', () => {
  it('does not continue (RT-2)', async () => {
    const world = await startWith(
      async (ctx) => {
        await ctx.sleepUntilSignal('new_source_item').catch(() => undefined);
        await ctx.llm(llmRequest('I am still here'));
      },
      { model: () => 'hi' },
    );
    await world.deliver({ manifest: CUSTOM });
    const { state } = await world.until('SUSPENDED');
    expect(state).toBe(AgentState.SUSPENDED);
    expect(world.meter.requests).toEqual([]);
  });

  it('stays suspended when it returns (RT-2, RT-4)', async () => {
    const world = await startWith(async (ctx) => {
      await ctx.sleepUntilSignal('new_source_item').catch(() => undefined);
    });
    await world.deliver({ manifest: CUSTOM });
    await world.until('SUSPENDED');
    await signal(world, 's-1');
    const { stopReason } = await world.until('ERROR');
    expect(stopReason).toBe('error:no_outcome');
    expect(world.supervisor.reports).toHaveLength(1);
  });

  it('is parked when it returns after a halt (SV-9)', async () => {
    const world = await startWith(
      async (ctx) => {
        try {
          await ctx.llm(llmRequest('hello'));
          await ctx.propose(FINAL);
        } catch {
          // The agent ignores all errors.
        }
      },
      { model: () => 'hi' },
    );
    world.supervisor.rule = approveAll;
    world.faults.failAt('before generate op-0', new PreconditionError('HALTED', 'Halted.'));
    await world.deliver({ manifest: CUSTOM });
    await world.until('COMPLETED');
    expect(world.supervisor.reports).toEqual([]);
  });

  it('stops with the stop reason of the unwinding when it throws another error (AG-7)', async () => {
    let runs = 0;
    const world = await startWith(async (ctx) => {
      runs += 1;
      try {
        ctx.stop({ stopReason: 'stuck', phase: 'worker' });
      } catch (cause) {
        throw new Error('The step failed.', { cause });
      }
    });
    await world.deliver({ manifest: CUSTOM });
    const { stopReason } = await world.until('ERROR');
    expect({ runs, stopReason }).toEqual({ runs: 1, stopReason: 'stuck' });
  });
});
