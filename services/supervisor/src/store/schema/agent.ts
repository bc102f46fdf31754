import type { Phase, TerminalState } from '@writ/kernel';
import { column, table } from '@writ/store';

/** The state of an agent, which is live until its ending is recorded. */
type StoredAgentState = 'RUNNING' | 'SUSPENDED' | 'PARKED' | TerminalState;

/** One row for each agent of a run; the ending columns are written once (AG-7). */
export const agents = table('agents', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    instance: column.text(),
    name: column.text(),
    /** Null at the root. */
    parent_instance: column.text().nullable(),
    parent_name: column.text().nullable(),
    depth: column.integer(),
    /** JSON of domain/manifest, narrowed for this run. */
    manifest: column.text(),
    definition_hash: column.text(),
    /** JSON: an execution budget. */
    execution_budget: column.text(),
    /** Deadline by the agent's own budget; null when only its run's deadline applies. */
    deadline_at: column.timestamp().nullable(),
    priority: column.text(),
    retention: column.text(),
    /** JSON arrays of names. */
    tools: column.text(),
    models: column.text(),
    state: column.text<StoredAgentState>(),
    /** Highest lease epoch seen (RT-2). */
    epoch: column.bigint(),
    /** Reviewed steps (SV-1). */
    steps: column.integer(),
    /** Active time of past periods, and the start of the current one; null while the clock is stopped (EM-1). */
    active_ms: column.integer(),
    active_since: column.timestamp().nullable(),
    /** Time of the last activity. */
    last_seen_at: column.timestamp().nullable(),
    /** Start of the wait for an approval, or of the wait that spawn-budget reported; null otherwise. */
    waiting_since: column.timestamp().nullable(),
    /** JSON array of the signals of a reported wait; null otherwise. */
    waiting_for: column.text().nullable(),
    /** Sequence number, in spawn-budget's pool, of the last reported wait or its end; zero before. */
    wait_sequence: column.bigint(),
    /** Start of the pause; null while the agent may act (SB-4). */
    paused_since: column.timestamp().nullable(),
    /** Time of the last known pause or resumption. */
    slot_changed_at: column.timestamp().nullable(),
    ending_stop_reason: column.text().nullable(),
    ending_phase: column.text<Phase>().nullable(),
    ending_call_id: column.text().nullable(),
    ending_answer: column.text().nullable(),
    /**
     * One sentence about the ending: from the worker, from the error of a start that failed, or from the reconciler for
     * a lost agent.
     */
    ending_detail: column.text().nullable(),
    /** Whether the stop reason is only the worker's claim (SV-7). */
    ending_unverified: column.boolean(),
    ended_at: column.timestamp().nullable(),
    /** The closed tab as JSON; null while open. */
    tab: column.text().nullable(),
    /** 1 while its content is to be deleted after the end of its run, see SUP-4; null otherwise. */
    purge_pending: column.integer().nullable(),
  },
  primaryKey: ['tenant', 'run_id', 'instance'],
  indexes: {
    agents_active: { on: ['active_since'], where: ['active_since', 'is not', null] },
    agents_to_purge: { on: ['tenant', 'run_id'], where: ['purge_pending', 'is not', null] },
    agents_deadline: { on: ['deadline_at'], where: ['ended_at', 'is', null] },
  },
});

/** One row for each approved delegation, unique on tenant, run, parent and call (SUP-9). */
export const spawns = table('spawns', {
  columns: {
    tenant: column.text(),
    run_id: column.text(),
    parent_instance: column.text(),
    call_id: column.text(),
    child_instance: column.text(),
    child_name: column.text(),
    /** The message that the child's answer refers to; empty when there is none. */
    correlation_id: column.text(),
    /** `refused`: no slot was available. `failed`: the child could not be set up, or its run or parent ended first. */
    state: column.text<'pending' | 'ready' | 'refused' | 'failed'>(),
    /** For `refused`, spawn-budget's error message; for `failed`, the reason; null otherwise. */
    why_not: column.text().nullable(),
    /** JSON array with the agent that was paused for the child; null if no agent was paused. */
    paused: column.text().nullable(),
    /** The call_id of the first EndChild call; null before that call. */
    end_call_id: column.text().nullable(),
    end_outcome: column.text().nullable(),
    /** JSON array of the agents that received the child's slot and were resumed; null until the slot is released. */
    resumed: column.text().nullable(),
    created_at: column.timestamp(),
  },
  primaryKey: ['tenant', 'run_id', 'parent_instance', 'call_id'],
  unique: { spawns_child: ['tenant', 'run_id', 'child_instance'] },
});
