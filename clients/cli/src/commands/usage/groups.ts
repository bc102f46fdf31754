/** The dimensions of `writ usage --by`. */
export const GROUPS = ['agent', 'run', 'session', 'tenant', 'model', 'day'] as const;

/** One of {@link GROUPS}. */
export type Group = (typeof GROUPS)[number];
