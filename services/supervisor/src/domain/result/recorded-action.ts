import type { FinalAction, JsonObject, JsonValue, ToolAction } from '@writ/kernel';

/** A delegation to another agent. */
export interface DelegationAction {
  readonly kind: 'delegation';
  readonly agent: string;
  readonly task: string;
}

/** A call of a tool that the program of an external agent executes itself: no gateway, no writ, no receipt (AP-5). */
export interface ClientToolAction {
  readonly kind: 'client_tool';
  readonly name: string;
  readonly args: JsonObject;
  /** SHA-256 of the definition that the program sent to its model, unverified; empty when it is unknown. */
  readonly definition_digest: string;
}

/** A recorded action, as JSON; a tool receives the RFC 8785 bytes of its `args`. */
export type RecordedAction = ToolAction | ClientToolAction | FinalAction | DelegationAction;

/** The name of an action in rows: the tool, `final`, or `handoff_<agent>`. */
export function actionName(action: RecordedAction): string {
  switch (action.kind) {
    case 'tool':
    case 'client_tool':
      return action.name;
    case 'final':
      return 'final';
    case 'delegation':
      return `handoff_${action.agent}`;
  }
}

/** An action that has a tool and arguments, which rules may revise and approvers may edit. */
export function isCall(action: RecordedAction): action is ToolAction | ClientToolAction {
  return action.kind === 'tool' || action.kind === 'client_tool';
}

/** Decodes an action; null becomes undefined. */
export function actionFrom(json: string | null): RecordedAction | undefined {
  return json === null ? undefined : (JSON.parse(json) as JsonValue as unknown as RecordedAction);
}
