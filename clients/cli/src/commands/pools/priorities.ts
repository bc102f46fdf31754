/** The priorities of agents, from the lowest. */
export const PRIORITY_NAMES = ['background', 'low', 'normal', 'high', 'critical'] as const;

/** The name of a priority. */
export type PriorityName = (typeof PRIORITY_NAMES)[number];
