import { expect, it } from 'vitest';
import { liveRunState } from './run-state.ts';

const runs = (isHalted: boolean) => ({ state: 'RUNNING', isHalted, waitsForInput: false });
const waits = (isHalted: boolean) => ({ state: 'SUSPENDED', isHalted, waitsForInput: false });
const asks = { ...waits(false), waitsForInput: true };

it.each([
  ['PARKED', 'all live agents are halted', [runs(true), waits(true)]],
  ['RUNNING', 'an agent that is not halted runs', [runs(true), runs(false), waits(false)]],
  ['RUNNING', 'an agent works while another one asks a person', [runs(false), asks]],
  ['SUSPENDED', 'all agents that are not halted wait', [runs(true), waits(false)]],
  ['WAITING_FOR_INPUT', 'all agents wait, and one of them for a person', [waits(false), asks]],
])('a run is %s when %s (AG-7, SV-9)', (state, _, agents) => {
  expect(liveRunState(agents)).toBe(state);
});
