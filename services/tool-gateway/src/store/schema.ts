import type { HistoryRetention } from '@writ/kernel';
import type { OutboxTable, SlotLeasesDatabase } from '@writ/store';
import type { Generated } from 'kysely';
import type { FreezeCause } from '../domain/freeze.ts';
import type { SideEffect } from '../domain/tool.ts';

/** One row for each tool call: its intent, then its outcome (TG-5). */
export interface CallsTable {
  tenant: string;
  run_id: string;
  agent_instance: string;
  call_id: string;
  agent_name: string;
  session_id: string;
  /** As the call said it; for events. */
  step: number;
  tool: string;
  /** Null where no tool of the registry was concerned. */
  side_effect: SideEffect | null;
  /** SHA-256 of the exact argument bytes; empty where nobody showed a writ. */
  args_sha256: string;
  writ_id: string;
  definition_digest: string;
  registry_version: string;
  /** JSON array of dotted paths that the receipt must carry. */
  result_fields: string;
  /** W3C trace context of the call that began it. */
  traceparent: string;
  state: 'intent' | 'ok' | 'error' | 'refused' | 'unknown' | 'burnt';
  /** The process that began it last; empty once that has ended or nobody began it. */
  owner: string;
  /** How often the tool was begun; zero where it never was. */
  attempts: number;
  started_at: Date;
  /** Null while there is only intent. */
  ended_at: Date | null;
  duration_ms: number | null;
  stop_reason: string;
  /** One sentence for the model. */
  message: string;
  /** JSON of the repetition that it was refused for; null for any other call. */
  repetition: string | null;
  result_kind: 'json' | 'text' | 'image' | null;
  /** Null without a result, and once it was purged. */
  result_content: string | null;
  result_media_type: string;
  result_truncated: boolean;
  result_full_size: number;
  result_full_sha256: string;
  /** The receipt that counts, and its number; null while there is only intent. */
  receipt: string | null;
  revision: number;
  /** The request that resolved an unknown outcome. */
  resolve_request_id: string | null;
  resolve_digest: string | null;
  resolved_by: string | null;
  resolved_at: Date | null;
}

/** One row for each receipt, until and after the supervisor has it (TG-8). */
interface ReceiptsTable {
  position: Generated<number | bigint>;
  receipt_id: string;
  tenant: string;
  run_id: string;
  agent_instance: string;
  call_id: string;
  revision: number;
  token: string;
  created_at: Date;
  /** Null until the supervisor has recorded it, or refused it for ever. */
  acknowledged_at: Date | null;
}

/**
 * How many calls were made: by the run (agent, tool and hash empty), by an agent of a tool (hash
 * empty), and by an agent of a tool with the same arguments (TG-2).
 */
interface CountersTable {
  tenant: string;
  run_id: string;
  agent_instance: string;
  tool: string;
  args_hash: string;
  calls: number;
  /** The last of them that was executed, where it is known. */
  last_call_id: string | null;
}

/** Highest lease epoch seen of each agent (RT-2). */
interface EpochsTable {
  tenant: string;
  run_id: string;
  agent_instance: string;
  epoch: bigint;
}

/** One row for each freeze order; lifting one lifts no other (SV-9). */
interface FreezesTable {
  order_id: string;
  /** `*`, a tenant, `tenant/run` or `tenant/run/agent`. */
  scope: string;
  cause: FreezeCause;
  reason: string;
  ordered_by: string;
  ordered_at: Date;
  retention: HistoryRetention | null;
  recorded_at: Date;
  lifted_at: Date | null;
}

/** One row for each attempt to call without a writ that fits, until the supervisor has it (TG-1). */
export interface RefusalsTable {
  position: Generated<number | bigint>;
  /** Derived from the rest but the time, so that the same attempt again is the same row. */
  refusal_id: string;
  tenant: string;
  run_id: string;
  agent_instance: string;
  call_id: string;
  /** WRIT_INVALID, WRIT_EXPIRED or WRIT_MISMATCH. */
  reason: string;
  /** The field that differs, where one does. */
  field: string;
  /** Of the writ that was shown, in hex. */
  writ_sha256: string;
  /** The worker's replica. */
  presented_by: string;
  refused_at: Date;
}

/** One row for each note that a run's agents wrote. */
interface NotesTable {
  tenant: string;
  run_id: string;
  name: string;
  text: string;
  size_bytes: number;
  written_at: Date;
}

/** Everything that the tool gateway remembers. */
export interface GatewayDatabase extends SlotLeasesDatabase {
  calls: CallsTable;
  receipts: ReceiptsTable;
  counters: CountersTable;
  epochs: EpochsTable;
  freezes: FreezesTable;
  refusals: RefusalsTable;
  notes: NotesTable;
  outbox: OutboxTable;
}
