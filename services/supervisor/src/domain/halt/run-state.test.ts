import { expect, it } from 'vitest';
import { livingRunState } from './run-state.ts';

const runs = (isHalted: boolean) => ({ state: 'RUNNING', isHalted });
const waits = (isHalted: boolean) => ({ state: 'SUSPENDED', isHalted });

it.each([
  ['PARKED', 'all live agents are halted', [runs(true), waits(true)]],
  ['RUNNING', 'an agent that is not halted runs', [runs(true), runs(false), waits(false)]],
  ['SUSPENDED', 'all agents that are not halted wait', [runs(true), waits(false)]],
])('a run is %s when %s (AG-7, SV-9)', (state, _, agents) => {
  expect(livingRunState(agents)).toBe(state);
});
