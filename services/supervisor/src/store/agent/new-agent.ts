import { type AgentKey, HistoryRetention } from '@writ/kernel';
import { STOPPED_CLOCK } from '../../domain/clock/active-clock.ts';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import { budgetToJson, manifestToJson } from '../../domain/manifest/manifest-json.ts';
import { type AgentRow, clockColumns } from './agents.ts';

/** The fields of a new agent. */
export interface NewAgent extends AgentKey {
  /** Its definition, narrowed for this run. */
  readonly manifest: AgentManifest;
  /** Catalog aliases that it may use. */
  readonly models: readonly string[];
  /** Omitted for the root. */
  readonly parent?: Pick<AgentRow, 'instance' | 'name' | 'depth'> | undefined;
}

/** The row of a new agent; its clock is stopped, and its `deadline_at` is null. */
export function newAgentRow({ tenant, runId, instance, manifest, models, parent }: NewAgent) {
  const row: AgentRow = {
    tenant,
    run_id: runId,
    instance,
    name: manifest.name,
    parent_instance: parent?.instance ?? null,
    parent_name: parent?.name ?? null,
    depth: parent === undefined ? 0 : parent.depth + 1,
    manifest: manifestToJson(manifest),
    definition_hash: manifest.definitionHash,
    execution_budget: budgetToJson(manifest.executionBudget),
    deadline_at: null,
    priority: manifest.priority,
    retention: manifest.retention,
    tools: JSON.stringify(manifest.tools),
    models: JSON.stringify(models),
    state: 'RUNNING',
    epoch: 0n,
    steps: 0,
    ...clockColumns(STOPPED_CLOCK),
    waiting_since: null,
    waiting_for: null,
    wait_sequence: 0n,
    paused_since: null,
    slot_changed_at: null,
    ending_stop_reason: null,
    ending_phase: null,
    ending_call_id: null,
    ending_answer: null,
    ending_detail: null,
    ending_unverified: false,
    ended_at: null,
    tab: null,
    purge_pending: manifest.retention === HistoryRetention.PERMANENT ? null : 1,
  };
  return row;
}
