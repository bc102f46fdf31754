/** What `writ usage --by` sums usage by. */
export const GROUPS = ['agent', 'run', 'session', 'tenant', 'model', 'day'] as const;

/** One of {@link GROUPS}. */
export type Group = (typeof GROUPS)[number];
