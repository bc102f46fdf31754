import type { AgentRef } from '@writ/kernel';
import type { Decision } from './decision.ts';

/** The supervisor's answer to a delegation: plain JSON, since it is journaled. */
export interface SpawnAnswer {
  readonly decision: Decision;
  /** Absent when there is no child. */
  readonly child?: AgentRef;
  /** Why no slot was had, as the cap's own sentence; empty otherwise. */
  readonly slotRefusal: string;
}
