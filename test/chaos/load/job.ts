/** One kind of run in the load. */
export interface Job {
  readonly name: string;
  readonly agent: string;
  /** Absent: the model of the agent's manifest. */
  readonly model?: string;
  /** The destructive tool that the run calls. */
  readonly tool: 'issue_refund' | 'publish_brief';
}

/** An automatically approved refund. */
export const FLOODED: Job = {
  name: 'refund',
  agent: 'refund-worker',
  model: 'sim-auto-1000',
  tool: 'issue_refund',
};

/** A refund that requires the decision of a human. */
export const PATIENT: Job = {
  name: 'refund-escalated',
  agent: 'refund-worker',
  model: 'sim-escalate-1200',
  tool: 'issue_refund',
};

/** An automatically approved refund, a refund that requires the decision of a human, and a team that asks a human. */
export const JOBS: readonly Job[] = [
  FLOODED,
  PATIENT,
  { name: 'team', agent: 'research-lead', tool: 'publish_brief' },
];
