/** What a worker wants of an agent's slot (SB-8). */
export type SlotIntent =
  /** It runs: keep the slot, or get one again. */
  | 'run'
  /** It sleeps: keep the slot without a lease. */
  | 'suspend'
  /** It is parked: only tell whether its slot is back. */
  | 'park';

/** One agent of a renewal. */
export interface SlotRenewal {
  readonly agentToken: string;
  readonly epoch: bigint;
  readonly intent: SlotIntent;
}

/** Where an agent stands in its run's headcount. */
export type SlotStatus = 'active' | 'suspended' | 'paused' | 'waiting' | 'released';

/** What a renewal came to for one agent. */
export type SlotAnswer =
  | {
      readonly state: SlotStatus;
      /** Proof that the agent may act; empty when it may not. */
      readonly grant: string;
      /** When the grant stops working, in milliseconds since 1970. */
      readonly grantExpiresAt: number;
      readonly refusal?: never;
    }
  /** Reason why this agent was refused; the others of the batch were not. */
  | { readonly refusal: string; readonly state?: never };
