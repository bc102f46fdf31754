import type { FinalAction, JsonValue, ToolAction } from '@writ/kernel';

/** A handoff to another agent. */
export interface DelegationAction {
  readonly kind: 'delegation';
  readonly agent: string;
  readonly task: string;
}

/** An action as it is recorded, as JSON: what a tool gets are the RFC 8785 bytes of its `args`. */
export type RecordedAction = ToolAction | FinalAction | DelegationAction;

/** What a row calls an action: the tool, `final`, or `handoff_<agent>`. */
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

/** The action in a row's JSON; null stays undefined. */
export function actionFrom(json: string | null): RecordedAction | undefined {
  return json === null ? undefined : (JSON.parse(json) as JsonValue as unknown as RecordedAction);
}
