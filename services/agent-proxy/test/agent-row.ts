import type { AgentRow } from '../src/store/agents.ts';

/** Returns the row of a main agent that has not ended, with an idle timeout of one second. */
export function agentRow(instance: string, used_at: Date): AgentRow {
  return {
    tenant: 'acme',
    run_id: 'run-1',
    instance,
    name: 'bot',
    parent_instance: null,
    client_id: null,
    child_name: '',
    session_id: 'session-1',
    request_id: 'req-1',
    request_digest: '',
    models: '[]',
    review: null,
    credentials: null,
    deadline_at: null,
    idle_ms: 1_000,
    used_at,
    traceparent: '',
    stop_reason: null,
    created_at: used_at,
    ended_at: null,
  };
}
