import {
  createExecutionBudget,
  createSpawnBudget,
  type ExecutionBudget,
  narrowExecutionBudget,
  type SpawnBudget,
} from '../budgets/budgets.ts';
import { assertId } from '../names/id-pattern.ts';
import { newId } from '../names/ids.ts';
import { Priority } from './priority.ts';
import { HistoryRetention } from './retention.ts';

/** One agent of a run: the name of its manifest and the instance assigned by the supervisor (SUP-9). */
export interface AgentRef {
  readonly name: string;
  readonly instance: string;
}

/** The fields of a {@link Supervision}, as stored and sent. */
export interface SupervisionFields {
  readonly runId: string;
  readonly sessionId: string;
  readonly rootId: AgentRef;
  /** Absent for the root. */
  readonly parentId?: AgentRef;
  readonly depth: number;
  readonly spawnBudget: SpawnBudget;
  readonly executionBudget: ExecutionBudget;
  readonly retention: HistoryRetention;
  readonly priority: Priority;
}

/** Options of a root agent; all have defaults (SUP-1). */
export interface RootOptions {
  readonly runId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly spawnBudget?: SpawnBudget | undefined;
  readonly executionBudget?: ExecutionBudget | undefined;
  readonly retention?: HistoryRetention | undefined;
  readonly priority?: Priority | undefined;
}

/** Options of a child agent, chosen by its parent (SUP-1). */
export interface ChildOptions {
  /** The spawning agent. */
  readonly parentId: AgentRef;
  /** Default: the budget of the parent. A requested budget is limited by the budget of the parent (SUP-9). */
  readonly executionBudget?: ExecutionBudget | undefined;
  readonly retention?: HistoryRetention | undefined;
  readonly priority?: Priority | undefined;
}

/** The position of an agent in the tree of its run, with its limits; immutable (SUP-1). */
export class Supervision implements SupervisionFields {
  readonly runId: string;
  readonly sessionId: string;
  readonly rootId: AgentRef;
  declare readonly parentId?: AgentRef;
  readonly depth: number;
  readonly spawnBudget: SpawnBudget;
  readonly executionBudget: ExecutionBudget;
  readonly retention: HistoryRetention;
  readonly priority: Priority;

  private constructor(fields: SupervisionFields) {
    this.runId = assertId(fields.runId, 'run_id');
    this.sessionId = assertId(fields.sessionId, 'session_id');
    this.rootId = agentRef(fields.rootId, 'root_id');
    if (fields.parentId !== undefined) this.parentId = agentRef(fields.parentId, 'parent_id');
    this.depth = fields.depth;
    this.spawnBudget = fields.spawnBudget;
    this.executionBudget = fields.executionBudget;
    this.retention = fields.retention;
    this.priority = fields.priority;
    Object.freeze(this);
  }

  /**
   * Creates the supervision of a root agent (SUP-1). Defaults: a generated run id; the run id as a new session
   * (SUP-2); retention PERMANENT and priority NORMAL.
   * @throws InvalidRequestError INVALID_ID or INVALID_BUDGET naming the field
   */
  static root(agent: AgentRef, options: RootOptions = {}): Supervision {
    const runId = options.runId ?? newId('run');
    return new Supervision({
      runId,
      sessionId: options.sessionId ?? runId,
      rootId: agent,
      depth: 0,
      spawnBudget: createSpawnBudget(options.spawnBudget),
      executionBudget: createExecutionBudget(options.executionBudget),
      retention: options.retention ?? HistoryRetention.PERMANENT,
      priority: options.priority ?? Priority.NORMAL,
    });
  }

  /**
   * Restores a stored or received supervision.
   * @throws InvalidRequestError INVALID_ID or INVALID_BUDGET naming the field
   */
  static restore(fields: SupervisionFields): Supervision {
    return new Supervision({
      ...fields,
      spawnBudget: createSpawnBudget(fields.spawnBudget),
      executionBudget: createExecutionBudget(fields.executionBudget),
    });
  }

  /**
   * Creates the supervision of a child (SUP-1): same run, session and spawn budget, one level deeper, and an execution
   * budget limited by the budget of this agent (SUP-9). Defaults: retention RUN and priority NORMAL.
   * @throws InvalidRequestError INVALID_ID or INVALID_BUDGET naming the field
   */
  spawnChild(options: ChildOptions): Supervision {
    return new Supervision({
      runId: this.runId,
      sessionId: this.sessionId,
      rootId: this.rootId,
      parentId: options.parentId,
      depth: this.depth + 1,
      spawnBudget: this.spawnBudget,
      executionBudget: narrowExecutionBudget(
        this.executionBudget,
        createExecutionBudget(options.executionBudget),
      ),
      retention: options.retention ?? HistoryRetention.RUN,
      priority: options.priority ?? Priority.NORMAL,
    });
  }

  /** Whether this is the root of its run (SUP-1). */
  get isRoot(): boolean {
    return this.parentId === undefined;
  }

  /**
   * Returns the topic on which the agents of the run, except external agents, publish their live progress: steps and
   * states, and model text if the manifest sets `unreviewed_deltas` (SUP-1). The NATS subjects of the topic are
   * `writ.progress.v1.<tenant>.<run_id>.<instance>`.
   */
  get progressTopic(): string {
    return `agent.progress/${this.runId}`;
  }
}

function agentRef(ref: AgentRef, field: string): AgentRef {
  return Object.freeze({
    name: assertId(ref.name, `${field}.name`),
    instance: assertId(ref.instance, `${field}.instance`),
  });
}
