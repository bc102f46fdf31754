import type { FinalAction, JsonValue, ToolAction } from '@writ/kernel';

/** A delegation to another agent. */
export interface DelegationAction {
  readonly kind: 'delegation';
  readonly agent: string;
  readonly task: string;
}

/** A recorded action, as JSON; a tool receives the RFC 8785 bytes of its `args`. */
export type RecordedAction = ToolAction | FinalAction | DelegationAction;

/** The name of an action in rows: the tool, `final`, or `handoff_<agent>`. */
export function actionName(action: RecordedAction): string {
  switch (action.kind) {
    case 'tool':
      return action.name;
    case 'final':
      return 'final';
    case 'delegation':
      return `handoff_${action.agent}`;
  }
}

/** Decodes an action; null becomes undefined. */
export function actionFrom(json: string | null): RecordedAction | undefined {
  return json === null ? undefined : (JSON.parse(json) as JsonValue as unknown as RecordedAction);
}
