/**
 * The priority of an agent (SUP-3). The weight decides preemption and the share of contended model-call slots; a model
 * call with BACKGROUND starts only when no agent of a higher priority waits for a slot.
 */
export const Priority = { BACKGROUND: 0, LOW: 1, NORMAL: 2, HIGH: 4, CRITICAL: 8 } as const;

/** The weight of a priority. */
export type Priority = (typeof Priority)[keyof typeof Priority];

/** The name of a priority, as in manifests. */
export type PriorityName = keyof typeof Priority;

const NAMES: Readonly<Record<Priority, PriorityName>> = {
  0: 'BACKGROUND',
  1: 'LOW',
  2: 'NORMAL',
  4: 'HIGH',
  8: 'CRITICAL',
};

/** Returns the name of a weight: 4 → `HIGH` (SUP-3). */
export function priorityName(priority: Priority): PriorityName {
  return NAMES[priority];
}

/** Whether `value` is one of the five weights (SUP-3). */
export function isPriority(value: unknown): value is Priority {
  return typeof value === 'number' && Object.hasOwn(NAMES, value);
}
