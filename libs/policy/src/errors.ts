import { InvalidRequestError } from '@writ/kernel';

/** One problem in a policy document or table, with its position and the expected value. */
export interface PolicyProblem {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** Counted from 1. */
  readonly column: number;
  readonly message: string;
}

/** Formats a problem as `policy.yaml:12:7: message`, which editors can open. */
export function formatProblem(problem: PolicyProblem): string {
  return `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`;
}

/**
 * The error for an invalid policy document or table (SV-3). `file`, `line` and `column` are the position of the first
 * problem. `problems` and the message list all problems in document order; the message has one problem per line.
 */
export class PolicyError extends InvalidRequestError {
  readonly problems: readonly PolicyProblem[];
  readonly file: string;
  readonly line: number;
  readonly column: number;

  constructor(problems: readonly [PolicyProblem, ...PolicyProblem[]]) {
    const [first] = problems;
    super('INVALID_POLICY', problems.map(formatProblem).join('\n'), {
      file: first.file,
      line: String(first.line),
      column: String(first.column),
    });
    this.problems = problems;
    this.file = first.file;
    this.line = first.line;
    this.column = first.column;
  }
}
