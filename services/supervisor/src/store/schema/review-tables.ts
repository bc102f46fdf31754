import type { Phase } from '@writ/kernel';
import type { Generated } from 'kysely';

/** The verdict on a proposal; `invalid` when it is not an action. */
export type StoredVerdict = 'approve' | 'revise' | 'block' | 'escalate' | 'invalid';

/** Which version of an action is executed (SV-6). */
export type StoredExecutedFrom = 'original' | 'supervisor_revised' | 'human_revised';

/** One row for each run: its current facts (SV-3). */
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
  /** Sequence of its first timeline entry, which gives the order of decisions. */
  sequence: number;
  /** Digest of the proposal without receipts, so that a reused call_id is detected. */
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
  /** The model's text, if it was the proposal. */
  raw_text: string | null;
  /** Null for an invalid proposal. */
  action: string | null;
  revised_action: string | null;
  executed_action: string | null;
  executed_from: StoredExecutedFrom | null;
  approval_id: string | null;
  /** Null when the agent may continue. */
  stop_reason: string | null;
  phase: Phase | null;
  /** False only while an approval is pending. */
  settled: boolean;
  /** An approved final that ended the agent. */
  run_ended: boolean;
  /** The reviewed definition of the tool, and the signed argument digest. */
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
  /** Null after a success. */
  stop_reason: string | null;
  /** Null without a result. */
  result_sha256: string | null;
  /** The claims as JSON. */
  claims: string;
  /** The content that the digest of the receipt covers; null until a worker sends it. */
  observation: string | null;
  received_at: Date;
}

/** One row for each approval (SV-5). */
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
  /** JSON, after revision by policy. */
  action: string;
  /** Empty when the action is not a tool call. */
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
  /** The deciding request, for idempotency. */
  request_id: string | null;
  request_digest: string | null;
}

/** One row for each audit record; the last three columns are null until it is linked (SV-8). */
export interface AuditTable {
  /** Insertion order; the number in the chain is `sequence`. */
  position: Generated<number | bigint>;
  tenant: string;
  recorded_at: Date;
  kind: string;
  /** Empty when there is none. */
  run_id: string;
  instance: string;
  call_id: string;
  canonical_json: string;
  sequence: number | null;
  previous_hash: string | null;
  hash: string | null;
}
