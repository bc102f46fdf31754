import { isTerminal, outcomeOf, type RunState } from '@writ/kernel';

/** The signal that brings a parked agent back before it looks for itself. */
export const RESUMED = 'resumed';
/** The signal that parks a running agent before it is refused (SV-9). */
export const HALTED = 'halted';

/** What a preempted agent waits for. */
const SLOT = 'slot';

/** Where an agent stands (AG-7). */
export interface AgentStatus {
  readonly state: RunState;
  /** Names of the signals that a SUSPENDED agent waits for; `slot` when a PARKED one was preempted. */
  readonly waitingFor: readonly string[];
  /** When a SUSPENDED or PARKED agent wakes without a signal. */
  readonly wakeAt: Date | undefined;
  /** Why it ended; undefined while it lives. */
  readonly stopReason: string | undefined;
}

/** What can happen to an agent. */
export type AgentEvent =
  /** A tool call is under way. */
  | { readonly type: 'tool_called' }
  /** It was answered. */
  | { readonly type: 'tool_answered' }
  /** It waits for one of these signals, or for a time. */
  | {
      readonly type: 'suspended';
      readonly waitingFor: readonly string[];
      readonly wakeAt?: Date | undefined;
    }
  /** It may not act now (halted or frozen) and looks again at a time. */
  | { readonly type: 'parked'; readonly until: Date }
  /** It has no slot any more, and rests until it has one again (SB-4). */
  | { readonly type: 'preempted' }
  /** A signal came. */
  | { readonly type: 'signalled'; readonly name: string }
  /** A worker takes it up; one that sleeps has reached its time. */
  | { readonly type: 'taken_up'; readonly at: Date }
  /** It ended, whoever ended it. */
  | { readonly type: 'ended'; readonly stopReason: string };

const RUNNING: AgentStatus = Object.freeze({
  state: 'RUNNING',
  waitingFor: Object.freeze([]),
  wakeAt: undefined,
  stopReason: undefined,
});

/** The status of an agent that was just delivered. */
export const DELIVERED: AgentStatus = RUNNING;

/**
 * The status after `event` (AG-7). A terminal status never changes again: the first ending wins,
 * whatever races (RT-4).
 * @throws InvalidRequestError INVALID_STOP_REASON for an ending that is not in the table
 */
export function reduceAgent(status: AgentStatus, event: AgentEvent): AgentStatus {
  if (isTerminal(status.state)) return status;
  switch (event.type) {
    case 'tool_called':
      return status.state === 'RUNNING' ? { ...RUNNING, state: 'WAITING_FOR_TOOL' } : status;
    case 'tool_answered':
      return status.state === 'WAITING_FOR_TOOL' ? RUNNING : status;
    case 'suspended':
      return {
        ...RUNNING,
        state: 'SUSPENDED',
        waitingFor: event.waitingFor,
        wakeAt: event.wakeAt,
      };
    case 'parked':
      return { ...RUNNING, state: 'PARKED', wakeAt: event.until };
    case 'preempted':
      return { ...RUNNING, state: 'PARKED', waitingFor: [SLOT] };
    case 'signalled':
      return isWokenBy(status, event.name) ? RUNNING : status;
    case 'taken_up':
      return isDue(status, event.at) ? RUNNING : status;
    case 'ended':
      return {
        ...RUNNING,
        state: outcomeOf(event.stopReason).state,
        stopReason: event.stopReason,
      };
  }
}

function isWokenBy(status: AgentStatus, name: string): boolean {
  if (status.state === 'PARKED') return name === RESUMED;
  return status.state === 'SUSPENDED' && status.waitingFor.includes(name);
}

function isDue({ state, wakeAt }: AgentStatus, at: Date): boolean {
  if (state !== 'SUSPENDED' && state !== 'PARKED') return false;
  return wakeAt !== undefined && wakeAt <= at;
}
