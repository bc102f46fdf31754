import type { Phase } from '@writ/kernel';
import type { Generated } from 'kysely';

/** What the supervisor said of a proposal; `invalid` when it was no action. */
export type StoredVerdict = 'approve' | 'revise' | 'block' | 'escalate' | 'invalid';

/** Whose version of an action is executed (SV-6). */
export type StoredExecutedFrom = 'original' | 'supervisor_revised' | 'human_revised';

/** One row for each run: its facts as they stand (SV-3). */
export interface FactsTable {
  tenant: string;
  run_id: string;
  /** JSON. */
  state: string;
}

/** One row for each proposal, unique on tenant, run, agent and call (SV-1). Actions are JSON. */
export interface DecisionsTable {
  tenant: string;
  run_id: string;
  instance: string;
  call_id: string;
  decision_id: string;
  /** Place of its first event in the run's timeline: the order of decisions. */
  sequence: number;
  /** Digest of the proposal without receipts, so that a reused call_id is noticed. */
  proposal_digest: string;
  model_call_id: string;
  /** From 1; zero for a composed final. */
  step: number;
  composed: boolean;
  partial: boolean;
  verdict: StoredVerdict;
  reason: string;
  rule_id: string;
  /** 0 to 1. */
  risk: number;
  policy_version: string;
  /** What the model said, when that was what was proposed. */
  raw_text: string | null;
  /** Null when the proposal was no action. */
  action: string | null;
  revised_action: string | null;
  executed_action: string | null;
  executed_from: StoredExecutedFrom | null;
  approval_id: string | null;
  /** Null when the agent may go on. */
  stop_reason: string | null;
  phase: Phase | null;
  /** False only while an approval is pending. */
  settled: boolean;
  /** An approved final that ended the agent. */
  run_ended: boolean;
  /** The tool's definition that was reviewed, and what was signed. */
  definition_digest: string | null;
  args_sha256: string | null;
  writ_count: number;
  last_writ_id: string | null;
  last_writ_expires_at: Date | null;
  /** JSON. */
  facts_before: string | null;
  facts_after: string | null;
  decided_at: Date;
  latency_us: number;
}

/** One row for each receipt; of a call, the highest revision counts (TG-8). */
export interface ReceiptsTable {
  tenant: string;
  run_id: string;
  instance: string;
  call_id: string;
  revision: number;
  receipt_id: string;
  status: 'ok' | 'error' | 'refused' | 'unknown' | 'void';
  /** Null when it went well. */
  stop_reason: string | null;
  /** Null without a result. */
  result_sha256: string | null;
  /** The claims as JSON. */
  claims: string;
  /** The content whose digest the receipt holds; null until somebody showed it. */
  observation: string | null;
  received_at: Date;
}

/** One row for each question to a person (SV-5). */
export interface ApprovalsTable {
  approval_id: string;
  tenant: string;
  run_id: string;
  instance: string;
  agent_name: string;
  call_id: string;
  step: number;
  kind: 'action' | 'resolve';
  state: 'pending' | 'approved' | 'rejected' | 'expired' | 'withdrawn' | 'resolved';
  /** JSON, after policy revised it. */
  action: string;
  /** Empty when the action is no tool call. */
  tool: string;
  reason: string;
  rule_id: string;
  risk: number;
  policy_version: string;
  run_created_by: string;
  created_at: Date;
  expires_at: Date | null;
  decided_by: string | null;
  decided_at: Date | null;
  comment: string | null;
  approved: boolean | null;
  executed_action: string | null;
  /** The deciding request, so that a repeat is the same and another one is noticed. */
  request_id: string | null;
  request_digest: string | null;
}

/** One row for each link of a tenant's chain; the last three are null until it is linked (SV-8). */
export interface AuditTable {
  /** Rises with time; the chain's own number is `sequence`. */
  position: Generated<number | bigint>;
  tenant: string;
  recorded_at: Date;
  kind: string;
  /** Empty when it has none. */
  run_id: string;
  instance: string;
  call_id: string;
  canonical_json: string;
  sequence: number | null;
  previous_hash: string | null;
  hash: string | null;
}
