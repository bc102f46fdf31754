import { type AgentRef, canonicalJson, type JsonObject, type Verdict } from '@writ/kernel';
import { isEvidence, type Policy } from '@writ/policy';
import { actionName, type RecordedAction } from '../result/recorded-action.ts';

/** Maximum number of steps that an approval shows. */
export const MAX_EVIDENCE_STEPS = 20;
/**
 * Size limits of the goal, the content of an action, an observation, the facts and all steps together, in bytes of
 * UTF-8.
 */
const MAX_GOAL = 4_096;
const MAX_CONTENT = 1_024;
const MAX_OBSERVATION = 4_096;
const MAX_FACTS = 4_096;
const MAX_STEPS_TOTAL = 32_000;

/** The records of a run from which evidence is selected. */
export interface EvidenceRecords {
  readonly goal: string;
  /** The facts of the run before the action of the approval. */
  readonly facts: JsonObject;
  /** The steps before the action, oldest first. */
  readonly steps: readonly StepRecord[];
  /** Whether there are earlier steps. */
  readonly hasMore: boolean;
}

/** One decision with the receipt of its call. */
export interface StepRecord {
  readonly agent: AgentRef;
  readonly callId: string;
  readonly step: number;
  readonly action: RecordedAction;
  readonly verdict: Verdict;
  readonly reason: string;
  readonly stopReason: string;
  readonly outcome: string;
  /** Empty when the worker did not send it. */
  readonly observation: string;
}

/** A step as an approver sees it. */
export interface EvidenceStep extends Omit<StepRecord, 'action' | 'verdict'> {
  readonly name: string;
  readonly content: string;
  readonly verdict: Verdict;
  readonly truncated: boolean;
}

/** Evidence of a run as an approver sees it. */
export interface Evidence {
  readonly goal: string;
  /** Empty when none of the facts that the policy shows is recorded, or the facts exceed the size limit. */
  readonly factsJson: string;
  readonly steps: readonly EvidenceStep[];
  readonly truncated: boolean;
}

/** Selects the evidence that the policy shows to approvers, within the size limits (SV-5, PE-1, BD-1). */
export function selectEvidence(policy: Policy, records: EvidenceRecords): Evidence {
  const { evidence } = policy;
  const goal = cut(evidence.goal ? records.goal : '', MAX_GOAL);
  const shown = Object.entries(records.facts).filter(([name]) => evidence.facts.includes(name));
  const facts = canonicalJson(Object.fromEntries(shown));
  const factsFit = Buffer.byteLength(facts) <= MAX_FACTS;
  const { steps, omitted } = selectSteps(policy, records.steps);
  return {
    goal: goal.text,
    factsJson: shown.length > 0 && factsFit ? facts : '',
    steps,
    truncated:
      goal.truncated ||
      !factsFit ||
      omitted ||
      (evidence.history && records.hasMore) ||
      steps.some(({ truncated }) => truncated),
  };
}

/**
 * Returns the latest steps that fit into the size limit; if the policy hides the history, only calls of the tools that
 * the policy lists as evidence.
 */
function selectSteps(
  policy: Policy,
  records: readonly StepRecord[],
): { readonly steps: readonly EvidenceStep[]; readonly omitted: boolean } {
  const wanted = records.filter(
    ({ action }) =>
      policy.evidence.history || (action.kind === 'tool' && isEvidence(policy, action.name)),
  );
  const steps: EvidenceStep[] = [];
  let left = MAX_STEPS_TOTAL;
  for (const record of wanted.toReversed()) {
    const step = shownStep(policy, record);
    left -= Buffer.byteLength(JSON.stringify(step));
    if (left < 0) return { steps, omitted: true };
    steps.unshift(step);
  }
  return { steps, omitted: false };
}

function shownStep(policy: Policy, { action, observation, ...record }: StepRecord): EvidenceStep {
  const content = cut(contentOf(action), MAX_CONTENT);
  const isShown = action.kind === 'tool' && isEvidence(policy, action.name);
  const result = cut(isShown ? observation : '', MAX_OBSERVATION);
  return {
    ...record,
    name: actionName(action),
    content: content.text,
    observation: result.text,
    truncated: content.truncated || result.truncated,
  };
}

function contentOf(action: RecordedAction): string {
  switch (action.kind) {
    case 'tool':
    case 'client_tool':
      return canonicalJson(action.args);
    case 'delegation':
      return action.task;
    case 'final':
      return action.answer;
  }
}

/** Cuts a text to at most `maxBytes`, between two characters. */
function cut(
  text: string,
  maxBytes: number,
): { readonly text: string; readonly truncated: boolean } {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= maxBytes) return { text, truncated: false };
  let end = maxBytes;
  // A byte 10xxxxxx continues the character before it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return { text: bytes.subarray(0, end).toString(), truncated: true };
}
