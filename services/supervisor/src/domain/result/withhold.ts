import type { RecordedAction } from './recorded-action.ts';
import type { RunResult } from './run-result.ts';
import { stopSentence } from './stop-sentence.ts';

/** An action without its content: its kind and the name of its tool or agent remain (SUP-4). */
export function withheldAction(action: RecordedAction): RecordedAction {
  switch (action.kind) {
    case 'tool':
    case 'client_tool':
      return { ...action, args: {} };
    case 'final':
      return { ...action, answer: '' };
    case 'delegation':
      return { ...action, task: '' };
  }
}

/**
 * A result without content: outcome, usage and the steps by name and digest remain; answer, history and texts of
 * worker and model are removed (SUP-4).
 */
export function withheldResult({ rawAction: _text, action, ...result }: RunResult): RunResult {
  return {
    ...result,
    answer: '',
    history: [],
    ...(action && { action: withheldAction(action) }),
    // Reported sentences may contain content.
    detail: result.workerDetail === '' ? result.detail : stopSentence(result.stopReason),
    workerDetail: '',
  };
}
