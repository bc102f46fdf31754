/** The operation that a worker requests for an agent's slot (SB-8). */
export type SlotIntent =
  /** The agent runs: keep or reacquire the slot. */
  | 'run'
  /** The agent is suspended: keep the slot without a lease. */
  | 'suspend'
  /** The agent is parked: only report the state of the slot. */
  | 'park';

/** One agent in a renewal request. */
export interface SlotRenewal {
  readonly agentToken: string;
  readonly epoch: bigint;
  readonly intent: SlotIntent;
  /** Signals that a suspended agent waits for; omitted for other intents. */
  readonly waitingFor?: readonly string[];
}

/** State of an agent's slot in the run's headcount. */
export type SlotStatus = 'active' | 'suspended' | 'paused' | 'waiting' | 'released';

/** The result of a renewal for one agent. */
export type SlotAnswer =
  | {
      readonly state: SlotStatus;
      /** Slot grant with which the agent may act; empty when the agent must not act. */
      readonly grant: string;
      /** Expiry of the grant on the local clock, in milliseconds since 1970. */
      readonly grantExpiresAt: number;
      readonly refusal?: never;
    }
  /** Reason code of the refusal; it does not affect the other agents of the batch. */
  | { readonly refusal: string; readonly state?: never };

/** A slot grant that the worker holds; the services that the worker calls verify the grant. */
export interface SlotGrant {
  readonly token: string;
  /** Expiry on the local clock, in milliseconds since 1970. */
  readonly expiresAt: number;
}
