import {
  derivedId,
  HistoryRetention,
  InvalidRequestError,
  Priority,
  type PriorityName,
} from '@writ/kernel';
import type { AgentManifest } from './agent-manifest.ts';

const RETENTION_ORDER = [HistoryRetention.NONE, HistoryRetention.RUN, HistoryRetention.PERMANENT];
const ROOT_SUFFIX = 6;
/**
 * Length of the suffix of a child instance; long, because a run may have many children of the same manifest, and their
 * instances must be unique.
 */
const CHILD_SUFFIX = 12;
const MAX_ID = 64;

/**
 * The instance of a run's root: the name of its manifest and a suffix of 6 characters, derived from `source`
 * (SUP-9).
 */
export function instanceOf(name: string, ...source: readonly string[]): string {
  return named(name, ROOT_SUFFIX, source);
}

/**
 * The instance of a child: the name of its manifest and a suffix of 12 characters, derived from run, parent and
 * call (SUP-9).
 */
export function childInstanceOf(name: string, ...source: readonly string[]): string {
  return named(name, CHILD_SUFFIX, source);
}

/** The lower of two priorities; `own` when nothing is requested. */
export function lowerPriority(own: PriorityName, wanted: PriorityName | undefined): PriorityName {
  return wanted !== undefined && Priority[wanted] < Priority[own] ? wanted : own;
}

/** The shorter of two retentions; `own` when nothing is requested. */
export function shorterRetention(
  own: HistoryRetention,
  wanted: HistoryRetention | undefined,
): HistoryRetention {
  if (wanted === undefined) return own;
  return RETENTION_ORDER.indexOf(wanted) < RETENTION_ORDER.indexOf(own) ? wanted : own;
}

/**
 * Checks that an agent may use a model: the model of its manifest, or a model that matches an entry of `also_allowed`.
 * @throws InvalidRequestError MODEL_NOT_ALLOWED naming `field`
 */
export function assertModelAllowed(
  { name, model }: Pick<AgentManifest, 'name' | 'model'>,
  wanted: string,
  field: string,
): void {
  if (wanted === model.model) return;
  if (wanted.includes('*')) {
    throw new InvalidRequestError(
      'MODEL_NOT_ALLOWED',
      `${field} must name one model; ${wanted} is a pattern.`,
      { field },
    );
  }
  if (model.alsoAllowed.some((pattern) => fits(pattern, wanted))) return;
  const allowed = [model.model, ...model.alsoAllowed].filter((alias) => alias !== '').join(', ');
  throw new InvalidRequestError(
    'MODEL_NOT_ALLOWED',
    `Model ${wanted} is not allowed for ${name}. Allowed models: ${allowed || 'none'}.`,
    { field },
  );
}

/** Returns whether a model matches a pattern, in which `*` matches any characters. */
function fits(pattern: string, text: string): boolean {
  const source = pattern.split('*').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${source.join('.*')}$`).test(text);
}

function named(name: string, length: number, source: readonly string[]): string {
  const suffix = derivedId('agt', name, ...source).slice(-length);
  return `${name.slice(0, MAX_ID - length - 1)}-${suffix}`;
}
