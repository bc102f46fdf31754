import type { SlotAnswer, SlotRenewal } from '../../domain/agent/slot.ts';

/** One entry of a renewal, and who is told what it came to. */
export interface RenewalEntry {
  readonly tenant: string;
  readonly renewal: SlotRenewal;
  answered(answer: SlotAnswer): Promise<void> | void;
}
