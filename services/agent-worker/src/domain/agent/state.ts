import { isTerminal, outcomeOf, type RunState } from '@writ/kernel';
import { isHumanReply } from './message.ts';

/** The signal that resumes a parked agent before its next retry. */
export const RESUMED = 'resumed';
/** The signal that parks a running agent before its calls are refused (SV-9). */
export const HALTED = 'halted';

/** The wait reason of a preempted agent. */
const SLOT = 'slot';

/** Status of an agent (AG-7). */
export interface AgentStatus {
  readonly state: RunState;
  /**
   * Signals that a SUSPENDED agent waits for. For a PARKED agent: `slot` after a preemption, and the approval signal of
   * its partial final answer if one is pending; or `code:…` when it waits for a worker with matching code (BD-6);
   * otherwise empty.
   */
  readonly waitingFor: readonly string[];
  /** Time at which a SUSPENDED or PARKED agent wakes without a signal; undefined if only a signal wakes it. */
  readonly wakeAt: Date | undefined;
  /** Stop reason; undefined until the agent has ended. */
  readonly stopReason: string | undefined;
}

/** Events that change an agent's status. */
export type AgentEvent =
  /** A tool call is in flight. */
  | { readonly type: 'tool_called' }
  /** The tool call has returned. */
  | { readonly type: 'tool_answered' }
  /** The agent waits for one of these signals, or until a time. */
  | {
      readonly type: 'suspended';
      readonly waitingFor: readonly string[];
      readonly wakeAt?: Date | undefined;
    }
  /**
   * The agent is halted or frozen, a service does not serve its tenant, or it waits for a worker with matching code; it
   * is retried at `until`.
   */
  | { readonly type: 'parked'; readonly until: Date; readonly waitingFor?: string }
  /** The agent has lost its slot and waits until it has one again (SB-4). */
  | {
      readonly type: 'preempted';
      /** The approval signal of its partial final answer; this signal wakes the agent even without a slot. */
      readonly approval?: string | undefined;
    }
  /** The agent received a signal. */
  | { readonly type: 'signalled'; readonly name: string }
  /** A worker claims the agent; a suspended or parked agent must be due. */
  | { readonly type: 'claimed'; readonly at: Date }
  /** The agent ended. */
  | { readonly type: 'ended'; readonly stopReason: string };

const RUNNING: AgentStatus = Object.freeze({
  state: 'RUNNING',
  waitingFor: Object.freeze([]),
  wakeAt: undefined,
  stopReason: undefined,
});

/** Status of a newly delivered agent. */
export const DELIVERED: AgentStatus = RUNNING;

/**
 * Returns the status after `event` (AG-7). A terminal status never changes: the first end wins
 * every race (RT-4).
 * @throws InvalidRequestError INVALID_STOP_REASON for an unknown stop reason
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
      return {
        ...RUNNING,
        state: 'PARKED',
        waitingFor: event.waitingFor === undefined ? [] : [event.waitingFor],
        wakeAt: event.until,
      };
    case 'preempted':
      return {
        ...RUNNING,
        state: 'PARKED',
        waitingFor: [SLOT, ...(event.approval === undefined ? [] : [event.approval])],
      };
    case 'signalled':
      return isWokenBy(status, event.name) ? RUNNING : status;
    case 'claimed':
      return isDue(status, event.at) ? RUNNING : status;
    case 'ended':
      return {
        ...RUNNING,
        state: outcomeOf(event.stopReason).state,
        stopReason: event.stopReason,
      };
  }
}

/**
 * Returns the state that clients see: WAITING_FOR_INPUT for an agent that is suspended until a person answers,
 * otherwise the state of the agent (AG-7).
 */
export function shownState({
  state,
  waitingFor,
}: Pick<AgentStatus, 'state' | 'waitingFor'>): RunState {
  return state === 'SUSPENDED' && waitingFor.some(isHumanReply) ? 'WAITING_FOR_INPUT' : state;
}

function isWokenBy(status: AgentStatus, name: string): boolean {
  if (name === SLOT) return false;
  if (status.state === 'PARKED') return name === RESUMED || status.waitingFor.includes(name);
  return status.state === 'SUSPENDED' && status.waitingFor.includes(name);
}

function isDue({ state, wakeAt }: AgentStatus, at: Date): boolean {
  if (state !== 'SUSPENDED' && state !== 'PARKED') return false;
  return wakeAt !== undefined && wakeAt <= at;
}
