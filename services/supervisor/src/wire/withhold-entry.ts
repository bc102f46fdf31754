import { fromBinary, toBinary } from '@bufbuild/protobuf';
import type { Action } from '@writ/contracts/writ/review/v1/action_pb';
import { RunEventSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { stopSentence } from '../domain/result/stop-sentence.ts';

/**
 * A timeline entry without its content: the decision and its rule remain; hook events contain only ids (SUP-4,
 * HK-1). Undefined when nothing has to be removed.
 */
export function withheldEntry(bytes: Uint8Array): Uint8Array | undefined {
  const event = fromBinary(RunEventSchema, bytes);
  const { entry } = event;
  if (entry.case === 'decision') {
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
  return toBinary(RunEventSchema, event);
}

function withhold(action: Action | undefined): void {
  if (action?.kind.case === 'tool') action.kind.value.argumentsJson = '{}';
  else if (action?.kind.case === 'final') action.kind.value.answer = '';
  else if (action?.kind.case === 'delegation') action.kind.value.task = '';
}
