import { ByteCache, canonicalDigest, type ExecutionBudget, type JsonObject } from '@writ/kernel';
import type { AgentManifest } from './agent-manifest.ts';

/** An execution budget in JSON: money is decimal text, so that it stays exact (EM-4). */
interface BudgetJson extends Omit<ExecutionBudget, 'maxCostNanoUsd'> {
  readonly maxCostNanoUsd?: string;
}

/** Encodes an execution budget for a column. */
export function budgetToJson(budget: ExecutionBudget): string {
  return JSON.stringify(plainBudget(budget));
}

/** Decodes an execution budget. */
export function budgetFromJson(text: string): ExecutionBudget {
  return budgetFrom(JSON.parse(text) as BudgetJson);
}

/** Encodes a manifest for a column. */
export function manifestToJson(manifest: AgentManifest): string {
  return JSON.stringify(plainManifest(manifest));
}

/** Cache of decoded manifests: every review needs a manifest, and manifests never change. */
const decodedManifests = new ByteCache<AgentManifest>({ name: 'manifests', maxBytes: 8_000_000 });

/** Decodes a manifest. */
export function manifestFromJson(text: string): AgentManifest {
  const known = decodedManifests.get(text);
  if (known !== undefined) return known;
  const manifest = parseManifest(text);
  decodedManifests.set(text, manifest);
  return manifest;
}

interface ManifestJson extends Omit<AgentManifest, 'executionBudget' | 'sessionBudget'> {
  readonly executionBudget: BudgetJson;
  readonly sessionBudget?: BudgetJson;
}

function parseManifest(text: string): AgentManifest {
  const { executionBudget, sessionBudget, ...rest } = JSON.parse(text) as ManifestJson;
  return Object.freeze({
    ...rest,
    executionBudget: budgetFrom(executionBudget),
    ...(sessionBudget && { sessionBudget: budgetFrom(sessionBudget) }),
  });
}

/** The manifest with its hash. */
export function withDefinitionHash(manifest: Omit<AgentManifest, 'definitionHash'>): AgentManifest {
  const { definitionHash: _ignored, ...content } = plainManifest({
    ...manifest,
    definitionHash: '',
  });
  return Object.freeze({ ...manifest, definitionHash: canonicalDigest(content) });
}

function plainManifest(manifest: AgentManifest): JsonObject {
  const { executionBudget, sessionBudget } = manifest;
  // Encoding as JSON also drops undefined fields.
  return JSON.parse(
    JSON.stringify({
      ...manifest,
      executionBudget: plainBudget(executionBudget),
      ...(sessionBudget && { sessionBudget: plainBudget(sessionBudget) }),
    }),
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

/**
 * Whether an agent runs in its own program, so that agent-proxy receives its deliveries and signals in place of a
 * worker (AP-1).
 */
export function isExternal({ manifest }: { readonly manifest: string }): boolean {
  return manifestFromJson(manifest).kind === 'external';
}
