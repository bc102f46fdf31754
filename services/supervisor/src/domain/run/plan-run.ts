import {
  derivedId,
  type ExecutionBudget,
  HistoryRetention,
  InvalidRequestError,
  isJsonObject,
  narrowExecutionBudget,
  narrowSpawnBudget,
  Priority,
  type PriorityName,
  parseJsonStrict,
  type SpawnBudget,
} from '@writ/kernel';
import type { AgentManifest } from '../manifest/agent-manifest.ts';

/** What a caller asks for; what is left out is the manifest's. */
export interface RunRequest {
  readonly goal: string;
  /** A JSON object, or empty. */
  readonly dataJson: string;
  readonly runBudget: ExecutionBudget;
  readonly spawnBudget: SpawnBudget;
  readonly priority: PriorityName | undefined;
  readonly retention: HistoryRetention | undefined;
  /** Catalog alias; empty = the manifest's. */
  readonly model: string;
}

/** What the run may really do: nothing beyond its root's manifest (SUP-9). */
export interface RunPlan {
  /** Name of the root's instance. */
  readonly rootInstance: string;
  /** The manifest as this run's root sees it: one model, budgets narrowed. */
  readonly manifest: AgentManifest;
  readonly runBudget: ExecutionBudget;
  readonly spawnBudget: SpawnBudget;
  readonly deadlineAt: Date | null;
}

const MAX_DATA_BYTES = 1_048_576;
const RETENTION_ORDER = [HistoryRetention.NONE, HistoryRetention.RUN, HistoryRetention.PERMANENT];
const INSTANCE_SUFFIX = 6;
const MAX_ID = 64;

/**
 * Narrows what was asked for to what the manifest allows (SUP-9). Larger budgets, weights and
 * retentions than the manifest's are cut; a model that it does not allow is refused.
 * @throws InvalidRequestError MODEL_NOT_ALLOWED, BAD_DATA or what parseJsonStrict throws
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
      model: { ...manifest.model, model: modelOf(manifest, request.model), alsoAllowed: [] },
      // The run's caps bind the root, too, so that its own clock keeps max_active for the run.
      executionBudget: runBudget,
      spawnBudget,
      priority: lowerPriority(manifest.priority, request.priority),
      retention: shorterRetention(manifest.retention, request.retention),
    },
    runBudget,
    spawnBudget,
    deadlineAt: deadlineMs === undefined ? null : new Date(now.getTime() + deadlineMs),
  };
}

/** The instance of an agent: its manifest's name and six characters of what made it (SUP-9). */
export function instanceOf(name: string, ...madeBy: readonly string[]): string {
  const suffix = derivedId('agt', name, ...madeBy).slice(-INSTANCE_SUFFIX);
  return `${name.slice(0, MAX_ID - INSTANCE_SUFFIX - 1)}-${suffix}`;
}

function checkData(text: string): void {
  if (text === '') return;
  const limits = { field: 'data_json', maxBytes: MAX_DATA_BYTES };
  if (isJsonObject(parseJsonStrict(text, limits))) return;
  throw new InvalidRequestError('BAD_DATA', 'data_json must be a JSON object.', {
    field: 'data_json',
  });
}

function modelOf({ name, model }: AgentManifest, wanted: string): string {
  if (wanted === '' || wanted === model.model) return model.model;
  if (model.alsoAllowed.some((pattern) => fits(pattern, wanted))) return wanted;
  const allowed = [model.model, ...model.alsoAllowed].join(', ');
  throw new InvalidRequestError(
    'MODEL_NOT_ALLOWED',
    `model is not one that ${name} may use; it may use ${allowed}.`,
    { field: 'model' },
  );
}

/** `*` stands for any characters. */
function fits(pattern: string, text: string): boolean {
  const source = pattern.split('*').map((part) => RegExp.escape(part));
  return new RegExp(`^${source.join('.*')}$`).test(text);
}

function lowerPriority(own: PriorityName, wanted: PriorityName | undefined): PriorityName {
  return wanted !== undefined && Priority[wanted] < Priority[own] ? wanted : own;
}

function shorterRetention(
  own: HistoryRetention,
  wanted: HistoryRetention | undefined,
): HistoryRetention {
  if (wanted === undefined) return own;
  return RETENTION_ORDER.indexOf(wanted) < RETENTION_ORDER.indexOf(own) ? wanted : own;
}
