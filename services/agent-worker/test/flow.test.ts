import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { describe, expect, it } from 'vitest';
import { RUN } from './delivery.ts';
import { approveAll } from './team.ts';
import { World } from './world.ts';

describe('a flow', () => {
  it('runs its stages in order, emits its start and end once, and stops when a stage fails (AG-1, HK-1)', async () => {
    const world = await World.start({
      model: (_, __, agent) => (agent.startsWith('bad') ? '' : `${agent} done`),
    });
    const worker = await world.startWorker();
    world.supervisor.rule = approveAll;
    const child = { kind: AgentKind.REACT, tools: [] };
    world.withChildren({ one: child, two: child, bad: child });
    const flow = (runId: string, steps: unknown[]) =>
      world.deliver({
        runId,
        manifest: {
          kind: AgentKind.FLOW,
          subAgents: [{ name: 'one' }, { name: 'two' }, { name: 'bad' }],
          optionsJson: JSON.stringify({ steps }),
        },
      });
    await flow(RUN, ['one', { parallel: ['one', 'two'] }]);
    await world.until('COMPLETED');
    expect(world.supervisor.endings.get(RUN)?.answer).toBe('one: one-2 done\n\ntwo: two-1 done');
    await flow('run-2', ['bad', 'two']);
    const { stopReason } = await world.until('ERROR', 'run-2');
    expect(stopReason).toBe('error:flow_target_failed');
    await flow('run-3', ['unknown']);
    expect((await world.until('ERROR', 'run-3')).stopReason).toBe('error:bad_flow');
    await worker.stop();
    const names = new Map<HookEventType, string>([
      [HookEventType.FLOW_START, 'START'],
      [HookEventType.FLOW_END, 'END'],
    ]);
    const reported = world.events.flatMap(({ runId, type, status }) =>
      names.has(type) ? [`${runId} ${names.get(type)} ${status}`.trim()] : [],
    );
    expect(reported).toEqual([
      'run-1 START',
      'run-1 END ok',
      'run-2 START',
      'run-2 END error:flow_target_failed',
    ]);
  });
});
