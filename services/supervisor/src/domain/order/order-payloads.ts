/** Payload of `spawn_child` and `end_child`. */
export interface ChildOrderPayload {
  /** Instance of the child. */
  readonly instance: string;
}

/** Payload of `wake_agent`. */
export interface WakeAgentPayload {
  readonly instance: string;
  /** The call whose approval was decided. */
  readonly callId: string;
}

/** Payload of `end_run`: the person who ended the run and the reason, if a person did. */
export interface EndRunPayload {
  readonly by?: string;
  readonly reason?: string;
}

/** Payload of `halt` and `resume`. */
export interface HaltPayload {
  readonly haltId: string;
}
