import { randomBytes } from 'node:crypto';
import { DeadlineError, InvalidRequestError } from '../errors/errors.ts';
import { assertId } from '../names/id-pattern.ts';
import { newId } from '../names/ids.ts';
import { CancellationToken } from '../time/cancellation.ts';
import { type Clock, systemClock } from '../time/clock.ts';
import type { AgentRef, Supervision } from './supervision.ts';

/** The fields of a {@link RunMeta}. */
export interface RunMetaFields {
  /** The subject of the verified token, for example `agent-worker` or a person's id. */
  readonly identity: string;
  readonly tenantId: string;
  readonly runId: string;
  readonly agent: AgentRef;
  /** The fencing epoch of the worker's lease (RT-2). */
  readonly epoch: number;
  /** W3C trace context of the caller (SYS-1). */
  readonly traceparent: string;
  /** The deadline of the work; absent without one. */
  readonly deadline?: Date | undefined;
  readonly cancellation: CancellationToken;
  /** Absent for a run without a tree. */
  readonly supervision?: Supervision | undefined;
  /** The clock for the deadline. */
  readonly clock?: Clock | undefined;
}

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The metadata of every call of a run (SUP-5), immutable. */
export class RunMeta {
  readonly identity: string;
  readonly tenantId: string;
  readonly runId: string;
  readonly agent: AgentRef;
  readonly epoch: number;
  readonly traceparent: string;
  readonly deadline: Date | undefined;
  readonly cancellation: CancellationToken;
  readonly supervision: Supervision | undefined;
  readonly clock: Clock;

  /** @throws InvalidRequestError naming the field that is malformed */
  constructor(fields: RunMetaFields) {
    this.identity = fields.identity;
    this.tenantId = assertId(fields.tenantId, 'tenant_id');
    this.runId = assertId(fields.runId, 'run_id');
    this.agent = Object.freeze({
      name: assertId(fields.agent.name, 'agent.name'),
      instance: assertId(fields.agent.instance, 'agent.instance'),
    });
    if (!Number.isSafeInteger(fields.epoch) || fields.epoch < 0) {
      throw invalid('epoch', 'must be a non-negative integer');
    }
    this.epoch = fields.epoch;
    if (!isTraceparent(fields.traceparent)) {
      throw invalid('traceparent', 'must be a W3C trace context');
    }
    this.traceparent = fields.traceparent;
    this.deadline = fields.deadline;
    this.cancellation = fields.cancellation;
    this.supervision = fields.supervision;
    this.clock = fields.clock ?? systemClock;
    Object.freeze(this);
  }

  /** Creates the metadata of a run without a tree, with generated ids and a token by default (SUP-5). */
  static standalone(given: Partial<RunMetaFields> = {}): RunMeta {
    return new RunMeta({
      ...given,
      identity: given.identity ?? 'standalone',
      tenantId: given.tenantId ?? 'default',
      runId: given.runId ?? newId('run'),
      agent: given.agent ?? { name: 'standalone', instance: newId('agent') },
      epoch: given.epoch ?? 0,
      traceparent: given.traceparent ?? newTraceparent(),
      cancellation: given.cancellation ?? new CancellationToken(),
    });
  }

  /** Returns a copy with some fields changed, such as the agent, the deadline or the span. */
  with(changes: Partial<RunMetaFields>): RunMeta {
    return new RunMeta({ ...this, ...changes });
  }

  /**
   * Called before each model call, before each tool call and between iterations (SUP-5).
   * @throws CancellationError when the run was cancelled
   * @throws DeadlineError when its deadline has passed
   */
  check(): void {
    this.cancellation.check();
    const left = this.remainingMs();
    if (left !== undefined && left <= 0) {
      throw new DeadlineError('DEADLINE_EXCEEDED', 'The deadline of the run has passed.', {
        run_id: this.runId,
      });
    }
  }

  /** Milliseconds until the deadline, negative after it; undefined without one. */
  remainingMs(): number | undefined {
    if (this.deadline === undefined) return undefined;
    return this.deadline.getTime() - this.clock.now().getTime();
  }
}

/** Generates a sampled W3C trace context (SYS-1). */
export function newTraceparent(): string {
  return `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;
}

/** Whether `value` is a well-formed W3C traceparent header (SYS-1). */
export function isTraceparent(value: unknown): value is string {
  return typeof value === 'string' && TRACEPARENT.test(value);
}

function invalid(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_RUN_META', `${field} ${rule}.`, { field });
}
