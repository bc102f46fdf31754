import type { CodeWait, Phase } from '@writ/kernel';

/**
 * Unwinds the stack of an agent function to release its resources (RT-2). Only the runtime throws it. If an agent
 * catches it, the next operation of the agent and the end of its function or branch throw it again.
 */
export abstract class Unwinding extends Error {}

/** The agent is suspended; its rows record what it waits for, and its lease is released. */
export class Suspended extends Unwinding {}

/**
 * A concurrent branch waits. Only this branch unwinds until every other branch waits or is done;
 * then the agent is suspended.
 */
export class BranchSuspended extends Unwinding {
  /** The signals that the branch waits for. */
  readonly names: readonly string[];

  constructor(names: readonly string[]) {
    super(`A branch waits for ${names.join(', ')}.`);
    this.names = names;
  }
}

/** A signal arrived while the agent was being suspended; the agent is runnable at once. */
export class SignalArrived extends Unwinding {}

/** The agent may not act now: it is halted or frozen, or a service rejects its tenant. */
export class Parked extends Unwinding {}

/**
 * The agent has no slot: it was preempted, or its slot lease expired and its run is full (SB-4).
 */
export class Preempted extends Unwinding {
  /** Whether the slot was given to another agent; false when only the lease of the slot expired. */
  readonly isPaused: boolean;

  constructor(message: string, isPaused: boolean) {
    super(message);
    this.isPaused = isPaused;
  }
}

/**
 * This worker lacks the code of the agent, or its code does not match the journal or the settings of the agent; a
 * worker with matching code can continue the agent (RT-1, BD-6).
 */
export class CodeMismatched extends Unwinding {
  readonly wait: CodeWait;

  constructor(wait: CodeWait, message: string) {
    super(message);
    this.wait = wait;
  }
}

/** Another worker has claimed the agent, or the agent has ended; this worker must not write anything more. */
export class LeaseLost extends Unwinding {}

/** This worker is shutting down; another worker continues the agent. */
export class Drained extends Unwinding {}

/** The agent has already ended; contains the stop reason if a peer returned it. */
export class AlreadyEnded extends Unwinding {
  readonly stopReason: string | undefined;

  constructor(stopReason: string | undefined) {
    super('The agent has already ended.');
    this.stopReason = stopReason;
  }
}

/** The outcome of an agent that does not end with an approved final answer. */
export interface Stop {
  readonly stopReason: string;
  readonly phase: Phase;
  /** The call at which the agent stopped. */
  readonly callId?: string | undefined;
  /** One sentence without content. */
  readonly detail?: string | undefined;
}

/** The agent stops. */
export class Stopped extends Unwinding {
  readonly stop: Stop;

  constructor(stop: Stop) {
    super(`The agent stops: ${stop.stopReason}.`);
    this.stop = stop;
  }
}

/** A peer refused a call permanently. The code that made the call decides how the agent continues. */
export class PeerRefusal extends Error {
  readonly stopReason: string;

  constructor(stopReason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.stopReason = stopReason;
  }
}
