export type { LoadOptions, Reload } from './document/load.ts';
export { loadPolicy, reloadPolicy } from './document/load.ts';
export { POLICY_SCHEMA } from './document/policy-schema.ts';
export type { PolicyProblem } from './errors.ts';
export { formatProblem, PolicyError } from './errors.ts';
export type { BusinessOutcome } from './facts/business-outcome.ts';
export { businessOutcome } from './facts/business-outcome.ts';
export { applyPending, applyReceipt, applyVoid } from './facts/count-calls.ts';
export type { CallEffect, CallState, FactReceipt, Facts } from './facts/fact-types.ts';
export { resultFieldsFor } from './facts/fact-updates.ts';
export { factValues, initialFacts } from './facts/fact-values.ts';
export { editableArguments } from './human/editable-arguments.ts';
export { isEvidence } from './human/evidence.ts';
export { requiresFourEyes } from './human/four-eyes.ts';
export type { Approver, CappedApproval, HumanCheck, HumanDecision } from './human/human-caps.ts';
export { cappedApproval, checkHumanDecision, humanCaps } from './human/human-caps.ts';
export type { Expectation, HumanRow, PolicyTable, TableRow } from './policy-test/policy-table.ts';
export { parsePolicyTable } from './policy-test/policy-table.ts';
export type { TableResult } from './policy-test/run-policy-table.ts';
export { factsWith, reviewRow, runPolicyTable } from './policy-test/run-policy-table.ts';
export type { ReviewInput } from './review/context.ts';
export { NO_EFFECTS } from './review/context.ts';
export type { ReviewOutcome, ReviewPass } from './review/fixpoint.ts';
export { MAX_REVISIONS, reviewToFixpoint } from './review/fixpoint.ts';
export type { Decision, RuleTrace } from './review/review.ts';
export { explainDecision, review } from './review/review.ts';
export type {
  BudgetView,
  EffectsView,
  EvidenceRule,
  Fact,
  FactValue,
  HumanCap,
  Policy,
  ProposedAction,
  Rule,
  RuleVerdict,
  SupervisionView,
  ToolSchemas,
} from './types.ts';
export { RULE_VERDICTS } from './types.ts';
