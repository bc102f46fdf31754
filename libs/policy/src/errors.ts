import { InvalidRequestError } from '@writ/kernel';

/** One mistake in a policy document or table: where it stands and what was expected there. */
export interface PolicyProblem {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** Counted from 1. */
  readonly column: number;
  readonly message: string;
}

/** `policy.yaml:12:7: message`, the form editors jump to. */
export function formatProblem(problem: PolicyProblem): string {
  return `${problem.file}:${problem.line}:${problem.column}: ${problem.message}`;
}

/**
 * A policy document or table was refused (SV-3). `file`, `line` and `column` are those of the
 * first problem; `problems` has them all in the order of the document, and so has the message,
 * one a line.
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
