import { Priority as ContractPriority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { Priority } from '@writ/kernel/portable';

const WEIGHTS: ReadonlyMap<number, Priority> = new Map([
  [ContractPriority.BACKGROUND, Priority.BACKGROUND],
  [ContractPriority.LOW, Priority.LOW],
  [ContractPriority.NORMAL, Priority.NORMAL],
  [ContractPriority.HIGH, Priority.HIGH],
  [ContractPriority.CRITICAL, Priority.CRITICAL],
]);

const NAMED: Readonly<Record<Priority, ContractPriority>> = {
  [Priority.BACKGROUND]: ContractPriority.BACKGROUND,
  [Priority.LOW]: ContractPriority.LOW,
  [Priority.NORMAL]: ContractPriority.NORMAL,
  [Priority.HIGH]: ContractPriority.HIGH,
  [Priority.CRITICAL]: ContractPriority.CRITICAL,
};

/** Returns the weight of a protobuf enum value (SUP-3); undefined for unspecified and unknown values. */
export function weightOf(priority: ContractPriority): Priority | undefined {
  return WEIGHTS.get(priority);
}

/** Returns the protobuf enum value of a weight (SUP-3). */
export function contractPriority(weight: Priority): ContractPriority {
  return NAMED[weight];
}
