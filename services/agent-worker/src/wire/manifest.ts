import {
  AgentManifestSchema,
  type AgentManifest as ManifestMessage,
} from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { type AgentKind, InvalidRequestError } from '@writ/kernel';
import { plainOf } from '@writ/rpc';
import type { AgentManifest } from '../domain/agent/manifest.ts';

/** Kinds that need no model (AG-4). */
const MODEL_LESS: ReadonlySet<AgentKind> = new Set(['user-proxy', 'flow', 'custom']);
const NO_MODEL = { model: '', alsoAllowed: [], jsonMode: false };
const NO_CONTEXT = { strategy: '', options: {}, strategies: [] };

/**
 * Converts a manifest into the form that is stored with the agent.
 * @throws InvalidRequestError INVALID_MANIFEST naming the field
 */
export function manifestFrom(message: ManifestMessage): AgentManifest {
  const plain = plainOf(AgentManifestSchema, message, {
    field: 'manifest',
    reason: 'INVALID_MANIFEST',
  });
  // The meter and spawn-budget enforce the budgets.
  const { kind, executionBudget: _execution, spawnBudget: _spawn, ...rest } = plain;
  if (kind === undefined) throw missing('kind');
  if (rest.model === undefined && !MODEL_LESS.has(kind)) throw missing('model');
  const { strategies, ...context } = rest.context ?? NO_CONTEXT;
  return {
    model: NO_MODEL,
    limits: {},
    guardrails: {},
    ...rest,
    kind,
    context: strategies.length === 0 ? context : { ...context, strategies },
  };
}

function missing(field: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_MANIFEST', `manifest.${field} is required.`, {
    field: `manifest.${field}`,
  });
}
