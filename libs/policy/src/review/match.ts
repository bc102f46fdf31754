import type { PriorityName } from '@writ/kernel';
import { matchesGlob } from '../glob.ts';

/** The kinds of action that a rule can name (SV-1). */
export const ACTION_KINDS = ['tool', 'final', 'delegation', 'client_tool'] as const;

/** Conditions of a rule: each list that is present must have a matching entry. */
export interface Match {
  readonly kind?: readonly string[];
  /**
   * Patterns for the tool; an action that is not a tool call never matches. A tool that the client executes itself
   * matches only when `kind` names `client_tool`, because the client chooses its name (AP-5).
   */
  readonly tool?: readonly string[];
  /** Patterns for the name of the proposing agent. */
  readonly agent?: readonly string[];
  /** Patterns for the target agent of a delegation; an action of another kind never matches. */
  readonly target?: readonly string[];
  readonly priority?: readonly PriorityName[];
  /** Patterns for the tenant. */
  readonly tenant?: readonly string[];
}

/** Values that a match is compared with; `tool` and `target` are empty for kinds without them. */
export interface MatchSubject {
  readonly kind: string;
  readonly tool: string;
  readonly agent: string;
  readonly target: string;
  readonly priority: string;
  readonly tenant: string;
}

/** The keys of a match in the order of evaluation. */
export const MATCH_KEYS = ['kind', 'tool', 'target', 'agent', 'priority', 'tenant'] as const;

/**
 * Returns why a subject does not match (`tool is send_refund_email`), or undefined when it matches.
 */
export function mismatch(match: Match, subject: MatchSubject): string | undefined {
  for (const key of MATCH_KEYS) {
    const patterns = match[key];
    if (patterns === undefined) continue;
    const value = subject[key];
    const named = key === 'tool' || key === 'target';
    if (named && value === '') return `kind is ${subject.kind}`;
    if (key === 'tool' && subject.kind === 'client_tool' && match.kind === undefined) {
      return `kind is ${subject.kind}, which match.kind does not name`;
    }
    if (!patterns.some((pattern) => matchesGlob(pattern, value))) return `${key} is ${value}`;
  }
  return undefined;
}
