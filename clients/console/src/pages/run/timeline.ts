import { costOf, eventLines, type ShownLine, wordOf } from '@writ/client/display';
import { type HookEvent, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentActivity } from '@writ/contracts/writ/run/v1/run_pb';
import type { AgentRef } from '@writ/contracts/writ/supervision/v1/supervision_pb';

/** The state of an agent of the run. */
export type AgentState = 'running' | 'waiting' | 'paused' | 'ended';

/** An agent in the tree of the run. */
export interface TreeAgent {
  readonly agent: AgentRef;
  readonly parent: string | undefined;
  readonly state: AgentState;
  /** What it waits for, why it is paused, or how it ended; may be empty. */
  readonly detail: string;
}

/** One entry of the timeline. */
export interface TimelineEntry {
  readonly event: RunEvent;
  readonly lines: readonly ShownLine[];
}

/** A point of the cost over time. */
export interface CostPoint {
  /** Unix time, ms. */
  readonly at: number;
  readonly costNanoUsd: bigint;
}

/** The state of a run that a page shows, derived from its events. */
export interface RunModel {
  readonly entries: readonly TimelineEntry[];
  /** By instance, in the order of their start. */
  readonly agents: ReadonlyMap<string, TreeAgent>;
  readonly costs: readonly CostPoint[];
  readonly costNanoUsd: bigint;
  readonly lastSequence: bigint;
  readonly isEnded: boolean;
  /**
   * Ids of the approvals that were requested and not decided. An agent with such an approval may still be running,
   * because external agents make concurrent calls.
   */
  readonly openApprovals: ReadonlySet<string>;
}

export const EMPTY_RUN: RunModel = {
  entries: [],
  agents: new Map(),
  costs: [],
  costNanoUsd: 0n,
  lastSequence: 0n,
  isEnded: false,
  openApprovals: new Set(),
};

/** Adds events, in the order of the timeline; live progress only changes the tree. */
export function withEvents(model: RunModel, events: readonly RunEvent[]): RunModel {
  const entries = [...model.entries];
  const agents = new Map(model.agents);
  const costs = [...model.costs];
  const openApprovals = new Set(model.openApprovals);
  let { costNanoUsd, lastSequence, isEnded } = model;
  for (const event of events) {
    applyToTree(agents, event);
    if (event.sequence === 0n || event.entry.case === 'heartbeat') continue;
    if (event.sequence <= lastSequence) continue;
    lastSequence = event.sequence;
    if (event.entry.case === 'hook') noteApproval(openApprovals, event.entry.value);
    const cost = costOf(event);
    if (cost > 0n) {
      costNanoUsd += cost;
      costs.push({ at: Number(event.recordTime?.seconds ?? 0n) * 1_000, costNanoUsd });
    }
    if (event.entry.case === 'result') isEnded = true;
    const lines = [...eventLines(event, costNanoUsd), ...otherLines(event)];
    if (lines.length > 0) entries.push({ event, lines });
  }
  return { entries, agents, costs, costNanoUsd, lastSequence, isEnded, openApprovals };
}

function noteApproval(open: Set<string>, { type, approvalId }: HookEvent): void {
  if (type === HookEventType.APPROVAL_REQUESTED) open.add(approvalId);
  if (type === HookEventType.APPROVAL_DECIDED) open.delete(approvalId);
}

/** Lines about events that the command line does not print. */
function otherLines({ entry }: RunEvent): ShownLine[] {
  if (entry.case === 'result') {
    const { stopReason, phase, detail } = entry.value;
    const where = phase === '' ? '' : ` in ${phase}`;
    return [line('ended', `${stopReason}${where}${detail === '' ? '' : `: ${detail}`}`)];
  }
  if (entry.case !== 'hook') return [];
  const hook = entry.value;
  switch (hook.type) {
    case HookEventType.RUN_START:
      return [line('started', `agent ${hook.agent?.name} (${hook.agent?.instance})`)];
    case HookEventType.RUN_END:
      return [line('ended', `agent ${hook.agent?.instance}: ${hook.status}`)];
    case HookEventType.HANDOFF:
      return [line('handoff', `to ${named(hook.otherAgent)}`)];
    case HookEventType.AGENT_PAUSED:
      return [line('paused', hook.otherAgent ? `for ${named(hook.otherAgent)}` : hook.status)];
    case HookEventType.AGENT_RESUMED:
      return [line('resumed', named(hook.agent))];
    case HookEventType.BUDGET_EXHAUSTED:
      return [line('budget', `${hook.dimension} exhausted: ${hook.status}`)];
    case HookEventType.GUARDRAIL_TRIP:
      return [line('guardrail', `${hook.dimension}: ${hook.status}`)];
    case HookEventType.HALTED:
      return [line('halted', `by ${hook.haltId}`)];
    case HookEventType.HALT_LIFTED:
      return [line('resumed', `halt ${hook.haltId} was lifted`)];
    case HookEventType.LOG_ENTRY:
      return [line('log', `${hook.logMessage} (${hook.callId})`)];
    default:
      return [];
  }
}

function line(label: string, text: string): ShownLine {
  return { label, text, step: 0 };
}

function named(agent: AgentRef | undefined): string {
  return agent === undefined ? '' : `${agent.name} (${agent.instance})`;
}

function applyToTree(agents: Map<string, TreeAgent>, event: RunEvent): void {
  const { agent, entry } = event;
  if (agent === undefined || agent.instance === '') return;
  const set = (state: AgentState, detail = ''): void => {
    const parent = agents.get(agent.instance)?.parent;
    agents.set(agent.instance, { agent, parent, state, detail });
  };
  const known = agents.get(agent.instance);
  if (entry.case === 'progress') {
    if (known?.state === 'ended') return;
    const { activity } = entry.value;
    if (activity !== AgentActivity.UNSPECIFIED) {
      const detail = wordOf(AgentActivity, activity).replaceAll('_', ' ');
      set(stateOf(activity), detail === 'running' || detail === 'ended' ? '' : detail);
    }
  } else if (entry.case === 'hook') applyHook(agents, entry.value, set);
  else if (entry.case === 'result') {
    for (const [instance, each] of agents) {
      if (each.state !== 'ended') agents.set(instance, { ...each, state: 'ended', detail: '' });
    }
  } else if (known === undefined) set('running');
}

function applyHook(
  agents: Map<string, TreeAgent>,
  hook: HookEvent,
  set: (state: AgentState, detail?: string) => void,
): void {
  const { agent, otherAgent } = hook;
  switch (hook.type) {
    case HookEventType.HANDOFF:
      if (otherAgent === undefined || agent === undefined) return;
      agents.set(otherAgent.instance, {
        ...(agents.get(otherAgent.instance) ?? { state: 'running', detail: '' }),
        agent: otherAgent,
        parent: agent.instance,
      });
      return;
    case HookEventType.RUN_END:
      set('ended', hook.status);
      return;
    case HookEventType.AGENT_PAUSED:
      set('paused', otherAgent === undefined ? hook.status : `for ${otherAgent.instance}`);
      return;
    case HookEventType.APPROVAL_REQUESTED:
      set('waiting', 'for a person');
      return;
    case HookEventType.AGENT_SUSPENDED:
      set('waiting', hook.waitingFor);
      return;
    case HookEventType.STEP_END:
      if (hook.waitingFor !== '') set('waiting', hook.waitingFor);
      return;
    case HookEventType.HALTED:
      return;
    default:
      if (agents.get(agent?.instance ?? '')?.state !== 'ended') set('running');
  }
}

function stateOf(activity: AgentActivity): AgentState {
  switch (activity) {
    case AgentActivity.WAITING_FOR_INPUT:
    case AgentActivity.SUSPENDED:
      return 'waiting';
    case AgentActivity.PARKED:
      return 'paused';
    case AgentActivity.ENDED:
      return 'ended';
    default:
      return 'running';
  }
}
