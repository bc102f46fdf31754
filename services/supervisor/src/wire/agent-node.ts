import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type AgentNodeSchema, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import type { SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { isInputWait } from '../domain/agent/waiting-for.ts';
import { activeMsAt } from '../domain/clock/active-clock.ts';
import { manifestFromJson } from '../domain/manifest/manifest-json.ts';
import { type AgentRow, clockOf } from '../store/agent/agents.ts';
import { agentRefOf, kindMessage, parentRefOf, priorityMessage } from './supervision.ts';

/** Converts an agent to its node in the supervision tree of its run. */
export function agentNode(
  agent: AgentRow,
  slot: SlotState | undefined,
  now: Date,
): MessageInitShape<typeof AgentNodeSchema> {
  const parent = parentRefOf(agent);
  const { paused_since, waiting_since, waiting_for, ended_at } = agent;
  return {
    agent: agentRefOf(agent),
    kind: kindMessage(manifestFromJson(agent.manifest).kind),
    ...(parent && { parent }),
    depth: agent.depth,
    state: stateOf(agent),
    priority: priorityMessage(agent.priority),
    ...(slot && { slot }),
    ...(paused_since && { pauseTime: timestampFromDate(paused_since) }),
    ...(waiting_since && { waitTime: timestampFromDate(waiting_since) }),
    waitingFor: waiting_for === null ? [] : (JSON.parse(waiting_for) as string[]),
    steps: agent.steps,
    activeTime: durationFromMs(activeMsAt(clockOf(agent), now)),
    stopReason: agent.ending_stop_reason ?? '',
    ...(ended_at && { endTime: timestampFromDate(ended_at) }),
  };
}

function stateOf({ state, waiting_for }: AgentRow): RunState {
  if (state === 'SUSPENDED' && isInputWait(waiting_for)) return RunState.WAITING_FOR_INPUT;
  return RunState[state];
}
