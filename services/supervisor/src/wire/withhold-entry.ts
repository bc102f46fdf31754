import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { Action } from '@writ/contracts/writ/review/v1/action_pb';
import { type HistoryEntry, RunEventSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { stopSentence } from '../domain/result/stop-sentence.ts';

/**
 * A timeline entry without its content: the decision and its rule remain; hook events contain only ids (SUP-4,
 * HK-1). Undefined when nothing has to be removed.
 * @param agents instances whose content is removed; omitted for all
 */
export function withheldEntry(
  bytes: Uint8Array,
  agents?: ReadonlySet<string>,
): Uint8Array | undefined {
  const event = fromBinary(RunEventSchema, bytes);
  const { entry } = event;
  if (agents !== undefined && entry.case === 'result') {
    for (const step of entry.value.history) {
      if (agents.has(step.agent?.instance ?? '')) withholdStep(step);
    }
  } else if (agents !== undefined && !agents.has(event.agent?.instance ?? '')) {
    return undefined;
  } else if (entry.case === 'decision') {
    const { action, revisedAction, executedAction, humanApproval } = entry.value;
    for (const shown of [action, revisedAction, executedAction]) withhold(shown);
    if (humanApproval !== undefined) {
      humanApproval.comment = '';
      humanApproval.basis = '';
    }
  } else if (entry.case === 'result') {
    const result = entry.value;
    result.answer = '';
    result.history = [];
    result.rawAction = '';
    // Reported sentences may contain content.
    if (result.workerDetail !== '') result.detail = stopSentence(result.stopReason);
    result.workerDetail = '';
    withhold(result.action);
  } else return undefined;
  const withheld = toBinary(RunEventSchema, event);
  // After a failed purge, the entry has no content any more.
  return Buffer.compare(withheld, bytes) === 0 ? undefined : withheld;
}

function withholdStep(step: HistoryEntry): void {
  for (const shown of [step.action, step.revisedAction, step.executedAction]) withhold(shown);
  step.observationJson = '';
  if (step.humanApproval !== undefined) step.humanApproval.comment = '';
}

function withhold(action: Action | undefined): void {
  if (action?.kind.case === 'tool') action.kind.value.argumentsJson = '{}';
  else if (action?.kind.case === 'clientTool') action.kind.value.argumentsJson = '{}';
  else if (action?.kind.case === 'final') action.kind.value.answer = '';
  else if (action?.kind.case === 'delegation') action.kind.value.task = '';
}
