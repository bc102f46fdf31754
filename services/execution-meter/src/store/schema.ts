import type { FreezesDatabase } from '@writ/freeze';
import type { OutboxDatabase, SlotLeasesDatabase } from '@writ/store';
import type { Generated } from 'kysely';

/** The tab of an agent. */
export interface TabTable {
  readonly tenant: string;
  readonly run_id: string;
  readonly agent_instance: string;
  readonly agent_name: string;
  readonly parent_name: string | null;
  readonly parent_instance: string | null;
  readonly session_id: string;
  readonly state: string;
  /** JSON list of catalog aliases. */
  readonly models: string;
  readonly priority: number;
  readonly deadline_at: Date | null;
  readonly reserve_tokens: bigint;
  readonly reserve_cost_ppm: bigint;
  readonly retention: string;
  readonly request_id: string;
  readonly request_digest: string;
  /** Highest lease epoch of the worker of the agent; null before the first (RT-2). */
  readonly epoch: bigint | null;
  readonly opened_at: Date;
  readonly closed_at: Date | null;
}

/** Account of one level. All columns except the caps are changed by additions only. */
export interface BalanceTable {
  /** Level and owner, such as `run:acme/run_1`. */
  readonly id: string;
  readonly cap_tokens: bigint | null;
  readonly cap_cost: bigint | null;
  readonly cap_turns: bigint | null;
  readonly used_tokens: Generated<bigint>;
  readonly used_cost: Generated<bigint>;
  readonly used_turns: Generated<bigint>;
  readonly reserved_tokens: Generated<bigint>;
  readonly reserved_cost: Generated<bigint>;
  readonly reserved_turns: Generated<bigint>;
  readonly debt_tokens: Generated<bigint>;
  readonly debt_cost: Generated<bigint>;
  readonly debt_turns: Generated<bigint>;
  readonly input_tokens: Generated<bigint>;
  readonly cached_input_tokens: Generated<bigint>;
  readonly output_tokens: Generated<bigint>;
  readonly reasoning_tokens: Generated<bigint>;
  readonly estimated_turns: Generated<bigint>;
  readonly failed_calls: Generated<bigint>;
}

/** One ledger entry: an attempt of a model call, a reservation, or consumed spending. */
export interface EntryTable {
  readonly tenant: string;
  readonly run_id: string;
  readonly agent_instance: string;
  readonly kind: string;
  readonly call_id: string;
  /** From 1 for model calls, else 0. */
  readonly attempt: number;
  readonly session_id: string;
  readonly agent_name: string;
  readonly model: string;
  /** UTC day whose caps it counts against. */
  readonly day: string;
  readonly state: string;
  readonly held_input: bigint;
  readonly held_output: bigint;
  readonly held_cost: bigint;
  readonly held_turns: bigint;
  readonly input_tokens: bigint;
  readonly cached_input_tokens: bigint;
  readonly output_tokens: bigint;
  readonly reasoning_tokens: bigint;
  readonly cost: bigint;
  readonly turns: bigint;
  readonly estimated: boolean;
  readonly failed: boolean;
  readonly exceeded: boolean;
  readonly by_expiry: boolean;
  /** Digests of the requests that created and settled it. */
  readonly request_digest: string;
  readonly settle_digest: string | null;
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly ended_at: Date | null;
}

/** One model call and its outcome (EM-7). */
export interface CallTable {
  readonly tenant: string;
  readonly run_id: string;
  readonly agent_instance: string;
  readonly call_id: string;
  readonly request_digest: string;
  readonly model: string;
  readonly step: number;
  readonly state: string;
  readonly attempts: number;
  /** Process of the last attempt; empty without an attempt. */
  readonly owner: string;
  readonly input_tokens: bigint;
  readonly cached_input_tokens: bigint;
  readonly output_tokens: bigint;
  readonly reasoning_tokens: bigint;
  readonly cost: bigint;
  readonly estimated: boolean;
  /** JSON of the answer; null without an answer and after a purge. */
  readonly answer: string | null;
  readonly purged: boolean;
  /** JSON of the failure. */
  readonly failure: string | null;
  /** JSON list of sentences. */
  readonly warnings: string;
  readonly fitted_output: bigint;
  readonly traceparent: string;
  readonly started_at: Date;
  readonly ended_at: Date | null;
}

/** Number of calls of a tab without an answer, by stop reason. */
interface FailureTable {
  readonly tenant: string;
  readonly run_id: string;
  readonly agent_instance: string;
  readonly stop_reason: string;
  readonly count: number;
  readonly last_call_id: string;
}

/** The state of execution-meter. */
export interface MeterDatabase extends OutboxDatabase, SlotLeasesDatabase, FreezesDatabase {
  tabs: TabTable;
  balances: BalanceTable;
  entries: EntryTable;
  calls: CallTable;
  failures: FailureTable;
}
