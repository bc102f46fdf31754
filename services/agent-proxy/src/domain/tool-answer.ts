import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import type { CallToolResponse } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';

/**
 * Placeholder for the id of an approval that asks for the outcome of a call, because only the supervisor knows that id.
 */
export const UNKNOWN_OUTCOME = 'outcome';

/** The current outcome of a tool call. */
export type ToolAnswer =
  /** The gateway executed or refused the call; every repeat gets the same outcome. */
  | { readonly kind: 'executed'; readonly decision: Decision; readonly outcome: CallToolResponse }
  /** Policy or a person refused the call; nothing was executed. */
  | { readonly kind: 'refused'; readonly decision: Decision }
  /**
   * The call waits for a person, who must approve it before it is executed, or state its outcome when the outcome is
   * unknown.
   */
  | { readonly kind: 'waiting'; readonly approvalId: string };
