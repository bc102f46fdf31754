import type { Insertable } from 'kysely';
import type { AgentsTable } from '../src/store/schema.ts';
import { AGENT, RUN, TENANT } from './delivery.ts';

/** Creation time of the agents of {@link inactiveAgentRow}. */
export const AT = new Date('2026-01-01T00:00:00Z');

/** The row of a preempted agent, with `changes`. */
export function inactiveAgentRow(
  changes: Partial<Insertable<AgentsTable>>,
): Insertable<AgentsTable> {
  return {
    tenant: TENANT,
    run_id: RUN,
    instance: AGENT.instance,
    name: AGENT.name,
    kind: 'react',
    request_id: 'd-1',
    request_digest: '',
    session_id: 's-1',
    manifest: '{}',
    supervision: '{}',
    state: 'PARKED',
    stop_reason: null,
    waiting_for: '["slot"]',
    wake_at: null,
    waiting_since: null,
    epoch: 1n,
    lease_owner: null,
    lease_expires_at: null,
    credentials: null,
    deadline_at: null,
    traceparent: '',
    last_traceparent: null,
    journal_length: 0,
    step_started: 0,
    step_ended: 0,
    first_reads: null,
    unreported_events: '[]',
    failures: 0,
    failed_length: 0,
    partial_final: null,
    code_version: '',
    reply_to: null,
    created_at: AT,
    ended_at: null,
    ...changes,
  };
}
