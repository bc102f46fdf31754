import {
  type ExecutionBudget,
  type HistoryRetention,
  InvalidRequestError,
  isJsonObject,
  narrowExecutionBudget,
  narrowSpawnBudget,
  type PriorityName,
  parseJsonStrict,
  type SpawnBudget,
} from '@writ/kernel';
import type { AgentManifest } from '../manifest/agent-manifest.ts';
import {
  assertModelAllowed,
  instanceOf,
  lowerPriority,
  shorterRetention,
} from '../manifest/narrow.ts';

/** The request of a client; omitted fields take the values of the manifest. */
export interface RunRequest {
  readonly goal: string;
  /** A JSON object, or empty. */
  readonly dataJson: string;
  readonly runBudget: ExecutionBudget;
  /** Undefined selects the manifest's session budget. */
  readonly sessionBudget: ExecutionBudget | undefined;
  readonly spawnBudget: SpawnBudget;
  readonly priority: PriorityName | undefined;
  readonly retention: HistoryRetention | undefined;
  /** Catalog alias; empty selects the model of the manifest. */
  readonly model: string;
}

/** The effective limits of a run, which never exceed the manifest of its root (SUP-9). */
export interface RunPlan {
  /** Name of the root's instance. */
  readonly rootInstance: string;
  /** The manifest of the root in this run: one model, narrowed budgets. */
  readonly manifest: AgentManifest;
  readonly runBudget: ExecutionBudget;
  /** Caps of the session; undefined when the run sets none (EM-3). */
  readonly sessionBudget: ExecutionBudget | undefined;
  readonly spawnBudget: SpawnBudget;
  readonly deadlineAt: Date | null;
}

const MAX_DATA_BYTES = 1_048_576;

/**
 * Narrows a request to what the manifest allows (SUP-9). Larger budgets, priorities and retentions are capped; a model
 * that the manifest does not allow is rejected.
 * @throws InvalidRequestError MODEL_NOT_ALLOWED, INVALID_RUN_DATA or what parseJsonStrict throws
 */
export function planRun(
  manifest: AgentManifest,
  request: RunRequest,
  runId: string,
  now: Date,
): RunPlan {
  checkData(request.dataJson);
  const runBudget = narrowExecutionBudget(manifest.executionBudget, request.runBudget);
  const spawnBudget = narrowSpawnBudget(manifest.spawnBudget, request.spawnBudget);
  const { deadlineMs } = runBudget;
  return {
    rootInstance: instanceOf(manifest.name, runId),
    manifest: {
      ...manifest,
      model: modelOf(manifest, request.model),
      // The caps of the run are also the caps of the root, so that the active clock of the root enforces the active
      // time limit of the run.
      executionBudget: runBudget,
      spawnBudget,
      priority: lowerPriority(manifest.priority, request.priority),
      retention: shorterRetention(manifest.retention, request.retention),
    },
    runBudget,
    sessionBudget: sessionBudgetOf(manifest.sessionBudget, request.sessionBudget),
    spawnBudget,
    deadlineAt: deadlineMs === undefined ? null : new Date(now.getTime() + deadlineMs),
  };
}

function sessionBudgetOf(
  own: ExecutionBudget | undefined,
  requested: ExecutionBudget | undefined,
): ExecutionBudget | undefined {
  return own === undefined ? requested : narrowExecutionBudget(own, requested ?? {});
}

function checkData(text: string): void {
  if (text === '') return;
  const limits = { field: 'data_json', maxBytes: MAX_DATA_BYTES };
  if (isJsonObject(parseJsonStrict(text, limits))) return;
  throw new InvalidRequestError('INVALID_RUN_DATA', 'data_json must be a JSON object.', {
    field: 'data_json',
  });
}

/**
 * Returns the models of the run: one model or, for an external agent without a requested model, all models of its
 * manifest (AP-1).
 */
function modelOf(manifest: AgentManifest, wanted: string): AgentManifest['model'] {
  if (wanted === '') {
    const isExternal = manifest.kind === 'external';
    return isExternal ? manifest.model : { ...manifest.model, alsoAllowed: [] };
  }
  assertModelAllowed(manifest, wanted, 'model');
  return { ...manifest.model, model: wanted, alsoAllowed: [] };
}
