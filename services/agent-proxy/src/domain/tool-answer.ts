import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import type { CallToolResponse } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';

/** In place of the id of an approval that asks what happened: only the supervisor knows its id. */
export const UNKNOWN_OUTCOME = 'outcome';

/** What became of a tool call. */
export type ToolAnswer =
  /** The gateway executed it, or refused it; every repeat gets the same. */
  | { readonly kind: 'executed'; readonly decision: Decision; readonly outcome: CallToolResponse }
  /** Policy or a person refused it; nothing was executed. */
  | { readonly kind: 'refused'; readonly decision: Decision }
  /** A person has not decided yet; nothing was executed. */
  | { readonly kind: 'waiting'; readonly approvalId: string };
