import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { Action, Decision } from '../../domain/calls/decision.ts';
import { partialText } from '../partial-text.ts';

/** One step in the prompt (SV-7). */
export interface HistoryEntry {
  readonly step: number;
  /** The proposed action; null when the model wrote no valid action. */
  readonly action: JsonObject | null;
  readonly supervisor: JsonObject & { readonly decision: string; readonly reason: string };
  /** The executed action; null when there is none. */
  readonly executed_action: JsonObject | null;
  readonly executed_from: string | null;
  readonly observation: JsonObject;
  readonly human_approval?: JsonObject;
}

/** Maximum length of an observation in the prompt, in characters. */
const MAX_OBSERVED = 4_096;

/** Builds the entry of a step: proposal, decision, execution and observation. */
export function historyEntry(
  step: number,
  decision: Decision,
  observation: JsonObject,
): HistoryEntry {
  const { verdict, reason, humanApproval, revisedAction } = decision;
  return {
    step,
    action: shown(decision.action),
    supervisor: {
      decision: verdict,
      reason,
      ...(revisedAction && { revised_action: shown(revisedAction) }),
    },
    executed_action: shown(decision.executedAction),
    executed_from: decision.executedFrom ?? null,
    observation: capped(observation),
    ...(humanApproval && {
      human_approval: {
        approved: humanApproval.approved,
        ...(humanApproval.basis !== '' && { basis: humanApproval.basis }),
        ...(humanApproval.comment !== '' && { comment: humanApproval.comment }),
      },
    }),
  };
}

/** Returns the partial answer of an agent: the results and errors of its approved tool calls. */
export function draftOf(history: readonly HistoryEntry[]): string {
  return partialText(
    history.flatMap(({ executed_action: executed, observation }) =>
      typeof executed?.name === 'string'
        ? [`${executed.name}: ${JSON.stringify(observation)}`]
        : [],
    ),
  );
}

/** Formats an action as models write it (SV-2). */
function shown(action: Action | undefined): JsonObject | null {
  switch (action?.kind) {
    case 'tool': {
      const args: JsonValue = JSON.parse(action.argumentsJson === '' ? '{}' : action.argumentsJson);
      return { kind: 'tool', name: action.tool, args: isJsonObject(args) ? args : {} };
    }
    case 'final':
      return { kind: 'final', answer: action.answer };
    case 'delegation':
      return { kind: 'delegation', agent: action.agent, task: action.task };
    case undefined:
      return null;
  }
}

/** Truncates a large result, because every later prompt includes it again. */
function capped(observation: JsonObject): JsonObject {
  const text = JSON.stringify(observation);
  if (text.length <= MAX_OBSERVED) return observation;
  const { status } = observation;
  return {
    ...(typeof status === 'string' && status.length < 64 && { status }),
    truncated: true,
    full_characters: text.length,
    beginning: text.slice(0, MAX_OBSERVED).toWellFormed(),
  };
}
