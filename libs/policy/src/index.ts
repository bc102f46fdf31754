export type { ReviewInput } from './context.ts';
export type { PolicyProblem } from './errors.ts';
export { formatProblem, PolicyError } from './errors.ts';
export { explainDecision } from './explain.ts';
export type { CallEffect, CallState, FactReceipt, Facts } from './fact-types.ts';
export { applyPending, applyReceipt, applyVoid, factValues, initialFacts } from './facts.ts';
export type { ReviewOutcome, ReviewPass } from './fixpoint.ts';
export { MAX_REVISIONS, reviewToFixpoint } from './fixpoint.ts';
export type { Approver, CappedApproval, HumanCheck, HumanDecision } from './human.ts';
export { cappedApproval, checkHumanDecision, humanCaps, requiresFourEyes } from './human.ts';
export type { LoadOptions, Reload } from './load.ts';
export { loadPolicy, reloadPolicy } from './load.ts';
export type { Decision, RuleTrace } from './review.ts';
export { review } from './review.ts';
export type { TableResult } from './run-table.ts';
export { factsWith, reviewRow, runPolicyTable } from './run-table.ts';
export type { Expectation, HumanRow, PolicyTable, TableRow } from './table.ts';
export { parsePolicyTable } from './table.ts';
export type {
  BudgetView,
  Fact,
  FactValue,
  HumanCap,
  Policy,
  ProposedAction,
  Rule,
  SupervisionView,
  ToolSchemas,
  Verdict,
} from './types.ts';
export { VERDICTS } from './types.ts';
export { resultFieldsFor } from './updates.ts';
