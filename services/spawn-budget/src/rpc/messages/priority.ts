import type { Priority as PriorityMessage } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { weightOf } from '@writ/identity';
import { Priority } from '@writ/kernel';

/** The weight that a request names; NORMAL when it names none (SUP-3). */
export function priorityOf(priority: PriorityMessage): Priority {
  return weightOf(priority) ?? Priority.NORMAL;
}
