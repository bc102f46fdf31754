import { type HookEvent, HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import { derivedId } from '@writ/kernel';
import { timelineId, workerEventId } from './hook-event.ts';

/** Rank of the events within a step, by type; other types have rank 0. */
const RANKS: Readonly<Partial<Record<HookEventType, number>>> = {
  [HookEventType.STEP_START]: 1,
  [HookEventType.LLM_START]: 2,
  [HookEventType.LLM_END]: 2,
  [HookEventType.BUDGET_EXHAUSTED]: 2,
  [HookEventType.LOG_ENTRY]: 2,
  [HookEventType.GUARDRAIL_TRIP]: 3,
  [HookEventType.TOOL_START]: 4,
  [HookEventType.TOOL_END]: 4,
  [HookEventType.STEP_END]: 5,
};

/**
 * Returns the ids of the events of the same agent that precede `event` on a timeline (HK-1): the start of the step
 * before LLM_START, GUARDRAIL_TRIP, BUDGET_EXHAUSTED, LOG_ENTRY and STEP_END; the end of the previous attempt before
 * LLM_START; the start of the attempt before LLM_END; the start of a tool call before TOOL_END; and, except for LLM_END
 * and TOOL_END, the events that the emitter names in `after`.
 */
export function predecessorsOf(event: HookEvent): string[] {
  const { callId, attempt, after } = event;
  const llm = (name: string, number: number) => idOf(event, callId, name, String(number));
  switch (event.type) {
    case HookEventType.LLM_START:
      return [
        ...startOfStep(event),
        ...(attempt > 1 ? [llm('LLM_END', attempt - 1)] : []),
        ...after,
      ];
    case HookEventType.LLM_END:
      return [llm('LLM_START', attempt)];
    case HookEventType.BUDGET_EXHAUSTED:
    case HookEventType.GUARDRAIL_TRIP:
    case HookEventType.LOG_ENTRY:
    case HookEventType.STEP_END:
      return [...startOfStep(event), ...after];
    case HookEventType.TOOL_END:
      // A refused call never started.
      return event.duration === undefined ? [] : [idOf(event, callId, 'TOOL_START')];
    default:
      return after;
  }
}

function startOfStep(event: HookEvent): string[] {
  return event.step === 0 ? [] : [idOf(event, `step-${event.step}`, 'STEP_START')];
}

/** The id of another event of the same agent (HK-1). */
function idOf({ runId, agent }: HookEvent, ...parts: readonly string[]): string {
  return derivedId('evt', runId, agent?.instance ?? '', ...parts);
}

/**
 * Sorts hook events by step and rank, then by their given order, and places the predecessors of each event (see
 * {@link predecessorsOf}) before it. Decisions are not hook events.
 */
export function inCausalOrder(events: readonly HookEvent[]): HookEvent[] {
  const left = new Map(events.toSorted(byStepAndRank).map((event) => [timelineId(event), event]));
  const ordered: HookEvent[] = [];
  // The loop uses no recursion, because a worker determines the length of a chain. Each event is visited once, even
  // when events name each other as predecessors.
  const path: { readonly event: HookEvent; readonly predecessors: Iterator<string> }[] = [];
  const enter = (event: HookEvent) => {
    left.delete(timelineId(event));
    path.push({ event, predecessors: predecessorsOf(event).values() });
  };
  for (const first of left.values()) {
    enter(first);
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const { value: id } = top.predecessors.next();
      if (id === undefined) {
        ordered.push(top.event);
        path.pop();
        continue;
      }
      const predecessor = left.get(id) ?? left.get(workerEventId(id));
      if (predecessor !== undefined) enter(predecessor);
    }
  }
  return ordered;
}

function byStepAndRank(left: HookEvent, right: HookEvent): number {
  const steps = stepOf(left) - stepOf(right);
  return steps === 0 ? rankOf(left) - rankOf(right) : steps;
}

function stepOf({ type, step }: HookEvent): number {
  return type === HookEventType.FLOW_END ? Number.MAX_SAFE_INTEGER : step;
}

function rankOf({ type }: HookEvent): number {
  return RANKS[type] ?? 0;
}
