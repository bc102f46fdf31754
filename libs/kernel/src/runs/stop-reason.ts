import { InvalidRequestError } from '../errors/errors.ts';

/** Non-terminal states of a run (AG-7). */
export const LIVE_STATES = [
  'RUNNING',
  'WAITING_FOR_TOOL',
  'WAITING_FOR_INPUT',
  'SUSPENDED',
  'PARKED',
] as const;

/** Terminal states of a run (AG-7, RT-4). */
export const TERMINAL_STATES = [
  'COMPLETED',
  'PAUSED',
  'CANCELLED',
  'TIMED_OUT',
  'MAX_STEPS',
  'BUDGET_EXCEEDED',
  'HALTED',
  'BLOCKED',
  'ERROR',
] as const;

/** The part of the system in which a run stopped (SV-7). */
export const PHASES = ['worker', 'supervisor', 'human_approval', 'execution', 'finalize'] as const;

/** A terminal state of a run. */
export type TerminalState = (typeof TERMINAL_STATES)[number];

/** Any state of a run (AG-7). */
export type RunState = (typeof LIVE_STATES)[number] | TerminalState;

/** How a run ended: with a reviewed answer, with a partial result, or stopped (SV-7). */
export type RunStatus = 'ok' | 'partial' | 'stopped';

/** One of {@link PHASES}. */
export type Phase = (typeof PHASES)[number];

/** State and status of a stop reason. */
export interface RunOutcome {
  readonly state: TerminalState;
  readonly status: RunStatus;
}

/** Names without a detail, and names that end in a colon and require a detail. */
const REASONS: Readonly<Record<TerminalState, readonly string[]>> = {
  COMPLETED: ['success', 'nothing_done', 'closed'],
  PAUSED: ['paused'],
  CANCELLED: ['cancelled'],
  TIMED_OUT: ['max_seconds', 'deadline', 'idle'],
  HALTED: ['halted'],
  MAX_STEPS: ['max_steps', 'max_tool_calls'],
  BUDGET_EXCEEDED: [
    'budget_exhausted:tokens',
    'budget_exhausted:cost',
    'budget_exhausted:turns',
    'budget_exhausted:spawns',
  ],
  BLOCKED: [
    'supervisor_block:',
    'human_rejected',
    'approval_expired',
    'withdrawn',
    'tool_denied:',
    'tool_missing:',
    'tool_changed:',
    'tool_bad_args:',
    'loop_detected:',
  ],
  ERROR: [
    'invalid_action:',
    'llm_timeout',
    'llm_empty',
    'provider_error:',
    'tool_error:',
    'tool_bad_result:',
    'outcome_unknown:',
    'stuck',
    'error:',
  ],
};

const STATE_OF: ReadonlyMap<string, TerminalState> = new Map(
  TERMINAL_STATES.flatMap((state) => REASONS[state].map((name) => [name, state] as const)),
);

/** Whether `state` is terminal (RT-4). */
export function isTerminal(state: RunState): state is TerminalState {
  return (TERMINAL_STATES as readonly RunState[]).includes(state);
}

/** Whether `text` is a stop reason of the table in docs/reference/stop-reasons.md. */
export function isStopReason(text: string): boolean {
  return stateOf(text) !== undefined;
}

/**
 * Returns the terminal state and status of a stop reason (AG-7).
 * @throws InvalidRequestError INVALID_STOP_REASON when it is not in the table
 */
export function outcomeOf(stopReason: string): RunOutcome {
  const state = stateOf(stopReason);
  if (state === undefined) {
    throw new InvalidRequestError(
      'INVALID_STOP_REASON',
      'stop_reason is not a known stop reason.',
      {
        field: 'stop_reason',
      },
    );
  }
  if (stopReason === 'success') return { state, status: 'ok' };
  const isPartial = state === 'COMPLETED' || state === 'PAUSED';
  return { state, status: isPartial ? 'partial' : 'stopped' };
}

function stateOf(stopReason: string): TerminalState | undefined {
  const colon = stopReason.indexOf(':');
  const isFamilyWithoutDetail = colon === stopReason.length - 1;
  if (colon === -1) return STATE_OF.get(stopReason);
  if (isFamilyWithoutDetail) return undefined;
  return STATE_OF.get(stopReason) ?? STATE_OF.get(stopReason.slice(0, colon + 1));
}
