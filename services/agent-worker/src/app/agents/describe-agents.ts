import type { AgentRef, RunKey, RunState } from '@writ/kernel';
import { shownState } from '../../domain/agent/state.ts';
import { type AgentRow, agentsOf, statusOf } from '../../store/agents.ts';
import { keyOf } from '../../store/keys.ts';
import type { Dependencies } from './dependencies.ts';

/** The current state of an agent. */
export interface AgentDescription {
  readonly agent: AgentRef;
  readonly state: RunState;
  readonly epoch: bigint;
  readonly journalLength: number;
  /** Names of the signals that the agent waits for. */
  readonly waitingFor: readonly string[];
  /** Empty until the agent has ended. */
  readonly stopReason: string;
}

type Parts = Pick<Dependencies, 'store' | 'agents'>;

/** Describes the agents of a run, oldest first (AG-7). */
export async function describeAgents(parts: Parts, run: RunKey): Promise<AgentDescription[]> {
  const rows = await agentsOf(parts.store.db, run);
  return rows.map((row) => describe(row, parts.agents));
}

function describe(row: AgentRow, agents: Parts['agents']): AgentDescription {
  const stored = statusOf(row);
  // Between two commits, only the process that runs the agent knows its status.
  const status = stored.state === 'RUNNING' ? (agents.statusOf(keyOf(row)) ?? stored) : stored;
  return {
    agent: { name: row.name, instance: row.instance },
    state: shownState(status),
    epoch: row.epoch,
    journalLength: row.journal_length,
    waitingFor: status.waitingFor,
    stopReason: status.stopReason ?? '',
  };
}
