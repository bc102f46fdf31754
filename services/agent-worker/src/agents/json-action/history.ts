import { isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { Action, Decision } from '../../domain/calls/decision.ts';

/** One step as the model is told of it (SV-7). */
export interface HistoryEntry {
  readonly step: number;
  /** What the model proposed; null when it was no action. */
  readonly action: JsonObject | null;
  readonly supervisor: JsonObject & { readonly decision: string; readonly reason: string };
  /** What was executed; null when nothing was. */
  readonly executed_action: JsonObject | null;
  readonly executed_from: string | null;
  readonly observation: JsonObject;
  readonly human_approval?: JsonObject;
}

/** Most characters of an observation that the model is shown. */
const MAX_OBSERVED = 4_096;

/** Tells of a step: what was proposed, decided, executed and seen. */
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
      human_approval: { approved: humanApproval.approved, comment: humanApproval.comment },
    }),
  };
}

/** An action in the shape in which models write it (SV-2). */
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

/** A large result would cost its tokens again with every step: the model sees its beginning. */
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
