import type { AgentKey, RunKey } from '@writ/kernel';
import type { ClosedTab } from '../../domain/result/closed-tab.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import type {
  DecisionRecord,
  EndingRecord,
  HandoffRecord,
  ReceiptRecord,
  ResultRecords,
} from '../../domain/result/result-records.ts';
import type { HumanAnswer } from '../../domain/result/run-result.ts';
import { type AgentRow, agentsOf, loadAgent } from '../../store/agent/agents.ts';
import { type SpawnRow, spawnsOf } from '../../store/agent/spawns.ts';
import { approvalsOf, humanAnswerOf } from '../../store/approval/approvals.ts';
import { type DecisionRow, decisionsOf } from '../../store/review/decisions.ts';
import { type ReceiptRow, receiptsOf } from '../../store/review/receipts.ts';
import type { SupervisorReader } from '../../store/supervisor-store.ts';

/** Reads the records from which the result of a run is built (SV-7). @param run the key of the root agent of the run */
export async function readResultRecords(
  db: SupervisorReader,
  run: AgentKey,
): Promise<ResultRecords> {
  const [agentRows, decisions, receipts] = await Promise.all([
    agentsOf(db, run),
    decisionsOf(db, run),
    receiptsOf(db, run),
  ]);
  const agents = new Map(agentRows.map((row) => [row.instance, row]));
  const root = agents.get(run.instance) ?? (await loadAgent(db, run));
  const answers = await answersTo(db, run, decisions);
  const delegates = decisions.some((row) => actionFrom(row.action)?.kind === 'delegation');
  const spawns = new Map(
    (delegates ? await spawnsOf(db, run) : []).map((row) => [spawnId(row), row]),
  );
  return {
    ending: endingRecord(root),
    decisions: decisions.map((row) => {
      const spawn = spawns.get(spawnId({ ...row, parent_instance: row.instance }));
      const handoff = spawn && handoffRecord(spawn, agents.get(spawn.child_instance));
      return { ...decisionRecord(row, agents, answers), handoff };
    }),
    receipts: latestReceipts(receipts),
    tab: root.tab === null ? undefined : (JSON.parse(root.tab) as ClosedTab),
  };
}

/**
 * Returns the answers of approvers to the approvals of the run, by approval id; empty when no decision has an approval.
 */
async function answersTo(
  db: SupervisorReader,
  run: RunKey,
  decisions: readonly DecisionRow[],
): Promise<ReadonlyMap<string, HumanAnswer>> {
  const answers = new Map<string, HumanAnswer>();
  if (decisions.every((row) => row.approval_id === null)) return answers;
  for (const approval of await approvalsOf(db, run)) {
    const answer = humanAnswerOf(approval);
    if (answer !== undefined) answers.set(approval.approval_id, answer);
  }
  return answers;
}

function endingRecord(root: AgentRow): EndingRecord {
  return {
    instance: root.instance,
    stopReason: root.ending_stop_reason ?? 'error:NO_ENDING',
    phase: root.ending_phase ?? undefined,
    callId: root.ending_call_id ?? undefined,
    answer: root.ending_answer ?? undefined,
    detail: root.ending_detail ?? undefined,
    unverified: root.ending_unverified,
  };
}

function decisionRecord(
  row: DecisionRow,
  agents: ReadonlyMap<string, AgentRow>,
  answers: ReadonlyMap<string, HumanAnswer>,
): DecisionRecord {
  return {
    agent: { name: agents.get(row.instance)?.name ?? '', instance: row.instance },
    callId: row.call_id,
    step: row.step,
    verdict: row.verdict,
    reason: row.reason,
    risk: row.risk,
    hasEffect: row.has_effect,
    rawText: row.raw_text ?? undefined,
    action: actionFrom(row.action),
    revisedAction: actionFrom(row.revised_action),
    executedAction: actionFrom(row.executed_action),
    executedFrom: row.executed_from ?? undefined,
    stopReason: row.stop_reason ?? undefined,
    human: row.approval_id === null ? undefined : answers.get(row.approval_id),
  };
}

function spawnId({ parent_instance, call_id }: Pick<SpawnRow, 'parent_instance' | 'call_id'>) {
  return `${parent_instance}/${call_id}`;
}

function handoffRecord(spawn: SpawnRow, child: AgentRow | undefined): HandoffRecord {
  const why = spawn.why_not ?? '';
  if (spawn.state === 'refused') return { kind: 'refused', sentence: why };
  if (spawn.state === 'failed') return { kind: 'failed', reason: why };
  return {
    kind: 'made',
    instance: spawn.child_instance,
    stopReason: child?.ending_stop_reason ?? undefined,
    answer: child?.ending_answer ?? undefined,
  };
}

/** The receipt of the highest revision of each call (TG-8). */
function latestReceipts(rows: readonly ReceiptRow[]): ReceiptRecord[] {
  const rising = rows.toSorted((left, right) => left.revision - right.revision);
  const latest = new Map(rising.map((row) => [`${row.instance}/${row.call_id}`, row]));
  return [...latest.values()].map((row) => ({
    instance: row.instance,
    callId: row.call_id,
    status: row.status,
    outcome: row.outcome ?? undefined,
    stopReason: row.stop_reason ?? undefined,
    observation: row.observation ?? undefined,
  }));
}
