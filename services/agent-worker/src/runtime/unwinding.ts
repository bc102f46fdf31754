import type { Phase } from '@writ/kernel';

/**
 * Takes an agent function down from the stack, so that what it held is freed (RT-2). Thrown by the
 * runtime only; an agent that catches one gets it again at its next operation.
 */
export abstract class Unwinding extends Error {}

/** The agent waits; its rows say for what, and its lease is given back. */
export class Suspended extends Unwinding {}

/**
 * A branch that runs beside others waits. The agent sleeps when each of them waits or is done; until
 * then only this branch is taken down.
 */
export class BranchSuspended extends Unwinding {
  /** The signals that it waits for. */
  readonly names: readonly string[];

  constructor(names: readonly string[]) {
    super(`A branch waits for ${names.join(', ')}.`);
    this.names = names;
  }
}

/** What the agent waits for has come while it fell asleep: it is taken up again at once. */
export class SignalArrived extends Unwinding {}

/** The agent may not act now: halted or frozen. */
export class Parked extends Unwinding {}

/** The agent has no slot: it was preempted, or its lease lapsed and its run is full (SB-4). */
export class Preempted extends Unwinding {}

/** Another worker has the agent, or it has ended: nothing more may be written. */
export class LeaseLost extends Unwinding {}

/** This worker stops; the next one goes on. */
export class Drained extends Unwinding {}

/** A peer says that the agent has ended; with this reason, if it told. */
export class AlreadyEnded extends Unwinding {
  readonly stopReason: string | undefined;

  constructor(stopReason: string | undefined) {
    super('The agent has ended already.');
    this.stopReason = stopReason;
  }
}

/** How an agent ends when no approved final ended it. */
export interface Stop {
  readonly stopReason: string;
  readonly phase: Phase;
  /** The call that it stopped at. */
  readonly callId?: string | undefined;
  /** One sentence for people, without content. */
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

/** A peer refused a call in a way that no repeat changes. Whoever called says what it means. */
export class PeerRefusal extends Error {
  readonly stopReason: string;

  constructor(stopReason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.stopReason = stopReason;
  }
}
