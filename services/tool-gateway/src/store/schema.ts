import type { FreezesDatabase } from '@writ/freeze';
import type { OutboxTable, SlotLeasesDatabase } from '@writ/store';
import type { Generated } from 'kysely';
import type { SideEffect } from '../domain/tool.ts';

/** One row for each tool call: its intent, then its outcome (TG-5). */
export interface CallsTable {
  tenant: string;
  run_id: string;
  agent_instance: string;
  call_id: string;
  agent_name: string;
  session_id: string;
  /** Step of the agent, as sent by the worker; used in events. */
  step: number;
  tool: string;
  /** Null when the tool is not in the registry. */
  side_effect: SideEffect | null;
  /** SHA-256 of the exact argument bytes; empty for a burnt call. */
  args_sha256: string;
  writ_id: string;
  definition_digest: string;
  registry_version: string;
  /** JSON array of dotted paths that the receipt must carry. */
  result_fields: string;
  /** W3C trace context of the request that began the call. */
  traceparent: string;
  state: 'intent' | 'ok' | 'error' | 'refused' | 'unknown' | 'burnt';
  /** The replica that works on the call; empty when no replica does. */
  owner: string;
  /** Number of attempts to run the tool. */
  attempts: number;
  started_at: Date;
  /** Null before the outcome. */
  ended_at: Date | null;
  duration_ms: number | null;
  stop_reason: string;
  /** One sentence for the model. */
  message: string;
  /** JSON of the repetition for which the call was refused; null for other calls. */
  repetition: string | null;
  result_kind: 'json' | 'text' | 'image' | null;
  /** Null without a result, and after a purge. */
  result_content: string | null;
  result_media_type: string;
  result_truncated: boolean;
  result_full_size: number;
  result_full_sha256: string;
  /** The current receipt and its revision; null before the outcome. */
  receipt: string | null;
  revision: number;
  /** The request that resolved an unknown outcome. */
  resolve_request_id: string | null;
  resolve_digest: string | null;
  resolved_by: string | null;
  resolved_at: Date | null;
}

/** One row for each receipt (TG-8). */
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
  /** Null until the supervisor has recorded or permanently rejected it. */
  acknowledged_at: Date | null;
}

/**
 * Number of calls of a run (agent, tool and hash empty), of an agent to a tool (hash empty), and of an
 * agent to a tool with the same arguments (TG-2).
 */
interface CountersTable {
  tenant: string;
  run_id: string;
  agent_instance: string;
  tool: string;
  args_hash: string;
  calls: number;
  /** The last executed call; null when unknown. */
  last_call_id: string | null;
}

/** Highest lease epoch seen for each agent (RT-2). */
interface EpochsTable {
  tenant: string;
  run_id: string;
  agent_instance: string;
  epoch: bigint;
}

/** One row for each call without a matching writ, until the supervisor acknowledges it (TG-1). */
export interface RefusalsTable {
  position: Generated<number | bigint>;
  /** Derived from the other columns except the time, so that a repeated attempt has the same id. */
  refusal_id: string;
  tenant: string;
  run_id: string;
  agent_instance: string;
  call_id: string;
  /** WRIT_INVALID, WRIT_EXPIRED or WRIT_MISMATCH. */
  reason: string;
  /** The field that differs; empty when none does. */
  field: string;
  /** SHA-256 of the presented writ, in hex. */
  writ_sha256: string;
  /** Replica of the worker. */
  presented_by: string;
  refused_at: Date;
}

/** One row for each note of a run. */
interface NotesTable {
  tenant: string;
  run_id: string;
  name: string;
  text: string;
  size_bytes: number;
  written_at: Date;
}

/** Tables of the tool gateway. */
export interface GatewayDatabase extends SlotLeasesDatabase, FreezesDatabase {
  calls: CallsTable;
  receipts: ReceiptsTable;
  counters: CountersTable;
  epochs: EpochsTable;
  refusals: RefusalsTable;
  notes: NotesTable;
  outbox: OutboxTable;
}
