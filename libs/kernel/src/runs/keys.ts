/** Identifies a run. */
export interface RunKey {
  readonly tenant: string;
  readonly runId: string;
}

/** Identifies one agent of a run by its instance name. */
export interface AgentKey extends RunKey {
  readonly instance: string;
}

/** Returns an agent key as text, for use as a map key. It is unambiguous, because ids contain no slash. */
export function agentKeyText({ tenant, runId, instance }: AgentKey): string {
  return `${tenant}/${runId}/${instance}`;
}

/** Identifies one model call or tool call of an agent. */
export interface CallKey extends AgentKey {
  readonly callId: string;
}

/** Returns a call key as text, for use as a map key. */
export function callKeyText(call: CallKey): string {
  return `${agentKeyText(call)}/${call.callId}`;
}

/** Which version of an action is executed: as proposed, as revised by policy, or as edited by a person (SV-6). */
export const EXECUTED_FROM = ['original', 'supervisor_revised', 'human_revised'] as const;

/** One of {@link EXECUTED_FROM}. */
export type ExecutedFrom = (typeof EXECUTED_FROM)[number];

/** The supervisor's verdict on a proposal; `invalid` when the proposal is not an action (SV-1). */
export type Verdict = 'approve' | 'revise' | 'block' | 'escalate' | 'invalid';
