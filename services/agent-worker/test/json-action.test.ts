import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { describe, expect, it } from 'vitest';
import { approveAll } from './team.ts';
import { World } from './world.ts';

const STEPS = 120;

describe('a json-action agent of many steps', () => {
  it('sends prompts that do not grow with the number of tool calls (AG-2)', async () => {
    const lengths: number[] = [];
    const world = await World.start({
      model: (prompt) => {
        lengths.push(JSON.stringify(prompt).length);
        const args = { user_id: 1_000 + lengths.length };
        return lengths.length < STEPS
          ? JSON.stringify({ kind: 'tool', name: 'get_refund_context', args })
          : '{"kind":"final","answer":"Looked often enough."}';
      },
    });
    await world.startWorker();
    world.supervisor.rule = approveAll;
    await world.deliver({ manifest: { kind: AgentKind.JSON_ACTION, limits: { maxSteps: STEPS } } });
    await world.until('COMPLETED');
    expect(lengths).toHaveLength(STEPS);
    // Only numbers get longer: from one digit to three, in seven places.
    const grown = (lengths.at(-1) ?? 0) - (lengths[4] ?? 0);
    expect(grown).toBeLessThanOrEqual(14);
  });
});
