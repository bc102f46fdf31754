import type { RecordedAction } from './recorded-action.ts';
import type { RunResult } from './run-result.ts';

/** An action without its content: what kind it was, and the name of its tool or agent (SUP-4). */
export function withheldAction(action: RecordedAction): RecordedAction {
  switch (action.kind) {
    case 'tool':
      return { ...action, args: {} };
    case 'final':
      return { ...action, answer: '' };
    case 'delegation':
      return { ...action, task: '' };
  }
}

/**
 * A result without content: how the run ended, what it spent, and its steps by name and digest stay;
 * answer, history and what the worker or the model said do not (SUP-4).
 */
export function withheldResult({ rawAction: _said, action, ...result }: RunResult): RunResult {
  return {
    ...result,
    answer: '',
    history: [],
    ...(action && { action: withheldAction(action) }),
    workerDetail: '',
  };
}
