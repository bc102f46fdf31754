import { HOOK_SUBJECTS, OBSERVED_SUBJECTS } from './subjects.ts';

/**
 * The hook events of each emitter (HK-1), which also define its NATS permissions. The supervisor publishes the
 * events of tool calls for a gateway without a bus.
 */
export const HOOK_EMITTERS = {
  supervisor: [
    'RUN_START',
    'RUN_END',
    'HANDOFF',
    'APPROVAL_REQUESTED',
    'APPROVAL_DECIDED',
    'HALTED',
    'HALT_LIFTED',
    'AUDIT_CHECKPOINT',
    'BUDGET_CHANGED',
  ],
  'spawn-budget': ['AGENT_PAUSED', 'AGENT_RESUMED', 'AGENT_SUSPENDED', 'AGENT_WOKEN'],
  'execution-meter': ['LLM_START', 'LLM_END', 'BUDGET_EXHAUSTED', 'BUDGET_THRESHOLD'],
  'tool-gateway': ['TOOL_START', 'TOOL_END'],
  'agent-worker': [
    'STEP_START',
    'STEP_END',
    'FLOW_START',
    'FLOW_END',
    'GUARDRAIL_TRIP',
    'LOG_ENTRY',
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** A service that emits hook events. */
export type HookEmitter = keyof typeof HOOK_EMITTERS;

/** All emitters, in the order of {@link HOOK_EMITTERS}. */
export const HOOK_EMITTER_NAMES = Object.keys(HOOK_EMITTERS) as readonly HookEmitter[];

/** A JetStream stream: its name and its subjects. */
export interface StreamPlan {
  readonly name: string;
  readonly subjects: readonly string[];
  /** The server publishes a copy of each stored message whose subject matches `src`, under the subject `dest`. */
  readonly republish?: { readonly src: string; readonly dest: string };
  /**
   * For a stream for observers: the names of its durable consumers, which are created with the stream. The stream
   * deletes its oldest messages when it is full or after three days, so that no observer can delay a publisher.
   */
  readonly observers?: readonly string[];
}

/**
 * The stream of one emitter's events. Each emitter has a separate stream: JetStream deduplicates ids within a stream,
 * so no emitter can suppress the events of another by publishing under their ids, and emitters do not block each other.
 */
export function hookStream(emitter: HookEmitter): StreamPlan {
  return {
    name: `WRIT_HOOKS_${emitter.toUpperCase().replaceAll('-', '_')}`,
    subjects: HOOK_EMITTERS[emitter].map((event) => `writ.hooks.v1.*.*.*.${event}`),
    republish: { src: HOOK_SUBJECTS, dest: OBSERVED_SUBJECTS },
  };
}

/** The streams of all hook events, `writ.hooks.v1.>` (HK-2). */
export const HOOK_STREAMS: readonly StreamPlan[] = HOOK_EMITTER_NAMES.map(hookStream);

/** Name of the NATS user and of the durable consumer of programs that observe events. */
export const OBSERVER = 'observer';

/** The stream with the copies of all hook events, `writ.observed.v1.>`. Observers can read only these copies (HK-3). */
export const OBSERVED_STREAM: StreamPlan = {
  name: 'WRIT_OBSERVED',
  subjects: [OBSERVED_SUBJECTS],
  observers: [OBSERVER],
};
