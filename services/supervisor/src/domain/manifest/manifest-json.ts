import { canonicalDigest, type ExecutionBudget, type JsonObject } from '@writ/kernel';
import type { AgentManifest } from './agent-manifest.ts';

/** An execution budget as JSON holds it: money is decimal text, so that it stays exact (EM-4). */
interface BudgetJson extends Omit<ExecutionBudget, 'maxCostNanoUsd'> {
  readonly maxCostNanoUsd?: string;
}

/** An execution budget as the JSON text of a row. */
export function budgetToJson(budget: ExecutionBudget): string {
  return JSON.stringify(plainBudget(budget));
}

/** The budget that {@link budgetToJson} wrote. */
export function budgetFromJson(text: string): ExecutionBudget {
  return budgetFrom(JSON.parse(text) as BudgetJson);
}

/** A manifest as the JSON text of a row. */
export function manifestToJson(manifest: AgentManifest): string {
  return JSON.stringify(plainManifest(manifest));
}

/** Manifests that were read lately: every review needs its agent's, and they never change. */
const read = new Map<string, AgentManifest>();
const MOST_READ = 1_000;

/** The manifest that {@link manifestToJson} wrote. */
export function manifestFromJson(text: string): AgentManifest {
  const known = read.get(text);
  if (known !== undefined) return known;
  const manifest = parseManifest(text);
  const oldest = read.keys().next();
  if (read.size >= MOST_READ && oldest.done !== true) read.delete(oldest.value);
  read.set(text, manifest);
  return manifest;
}

function parseManifest(text: string): AgentManifest {
  const { executionBudget, ...rest } = JSON.parse(text) as Omit<
    AgentManifest,
    'executionBudget'
  > & {
    readonly executionBudget: BudgetJson;
  };
  return Object.freeze({ ...rest, executionBudget: budgetFrom(executionBudget) });
}

/** The manifest with its content's hash. */
export function withDefinitionHash(manifest: Omit<AgentManifest, 'definitionHash'>): AgentManifest {
  const { definitionHash: _ignored, ...content } = plainManifest({
    ...manifest,
    definitionHash: '',
  });
  return Object.freeze({ ...manifest, definitionHash: canonicalDigest(content) });
}

function plainManifest(manifest: AgentManifest): JsonObject {
  // A round trip through JSON also drops what is undefined.
  return JSON.parse(
    JSON.stringify({ ...manifest, executionBudget: plainBudget(manifest.executionBudget) }),
  ) as JsonObject;
}

function plainBudget({ maxCostNanoUsd, ...rest }: ExecutionBudget): BudgetJson {
  return maxCostNanoUsd === undefined ? rest : { ...rest, maxCostNanoUsd: String(maxCostNanoUsd) };
}

function budgetFrom({ maxCostNanoUsd, ...rest }: BudgetJson): ExecutionBudget {
  return Object.freeze(
    maxCostNanoUsd === undefined ? rest : { ...rest, maxCostNanoUsd: BigInt(maxCostNanoUsd) },
  );
}
