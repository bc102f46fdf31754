import type { ChatTurn } from '../calls/model-call.ts';
import type { ToolInfo } from '../calls/tool-call.ts';

/** Data that most agents read before their first effect. */
export interface FirstReads {
  readonly tools?: readonly ToolInfo[];
  /** Turns that earlier runs stored in the session. */
  readonly history?: readonly ChatTurn[];
}
