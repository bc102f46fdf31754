import type { RunRow } from '../src/store/run/runs.ts';

const AT = new Date('2026-01-01T00:00:00Z');

/** A row of a run in progress, for tests of the store. */
export function runRow(tenant: string, runId: string): RunRow {
  return {
    tenant,
    run_id: runId,
    request_id: runId,
    request_digest: '',
    session_id: 'session',
    agent_name: 'agent',
    agent_kind: 'react',
    root_instance: 'agent',
    goal: 'goal',
    data_json: '',
    state: 'RUNNING',
    created_by: 'ann',
    created_at: AT,
    changed_at: AT,
    deadline_at: null,
    run_budget: '{}',
    session_budget: null,
    spawn_budget: '{}',
    priority: 'NORMAL',
    retention: 'PERMANENT',
    labels: '{}',
    trace_id: '',
    traceparent: '',
    definition_hash: '',
    event_key: '',
    key_id: null,
    conversation: null,
    model: '',
    approved_calls: 0,
    usage: null,
    result: null,
    ended_at: null,
    purged_at: null,
  };
}
