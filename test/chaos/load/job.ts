/** One kind of run that the load is made of. */
export interface Job {
  readonly name: string;
  readonly agent: string;
  /** Absent for the model of the agent's own manifest. */
  readonly model?: string;
  /** The stop reason of a run that nothing disturbs. */
  readonly tool: 'issue_refund' | 'publish_brief';
}

/** What runs under load: a refund that passes, one that a person decides, and a team with a person to ask. */
export const JOBS: readonly Job[] = [
  {
    name: 'refund',
    agent: 'refund-worker',
    model: 'sim-auto-1000',
    tool: 'issue_refund',
  },
  {
    name: 'refund-asked',
    agent: 'refund-worker',
    model: 'sim-escalate-1200',
    tool: 'issue_refund',
  },
  { name: 'team', agent: 'research-lead', tool: 'publish_brief' },
];
