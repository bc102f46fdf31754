import { assertId, InvalidRequestError } from '@writ/kernel';

/** Every hook event of every tenant (HK-2). */
export const HOOK_SUBJECTS = 'writ.hooks.v1.>';

const HOOKS = 'writ.hooks.v1';
const PROGRESS = 'writ.progress.v1';
const ABSENT = '-';
const EVENT = /^[A-Z][A-Z0-9_]{0,63}$/;
const TOKEN = /^[^\s.*>]+$/;

/** What a hook subject is made of; what an event does not have is left out. */
export interface HookAddress {
  readonly tenant?: string | undefined;
  readonly runId?: string | undefined;
  readonly agent?: string | undefined;
  /** Name of the event, such as `LLM_START`. */
  readonly event: string;
}

/**
 * The subject of a hook event: `writ.hooks.v1.<tenant>.<run_id>.<agent_id>.<event>`, with `-` for
 * what is absent (HK-1, HK-2).
 * @throws InvalidRequestError INVALID_ID or INVALID_EVENT naming the token
 */
export function hookSubject({ tenant, runId, agent, event }: HookAddress): string {
  if (!EVENT.test(event)) {
    throw new InvalidRequestError(
      'INVALID_EVENT',
      'event must be an upper-case name such as LLM_START.',
      { field: 'event' },
    );
  }
  return [
    HOOKS,
    idToken(tenant, 'tenant'),
    idToken(runId, 'run_id'),
    idToken(agent, 'agent_id'),
    event,
  ].join('.');
}

/** An agent whose progress is shown. */
export interface ProgressAddress {
  readonly tenant: string;
  readonly runId: string;
  /** Its instance. */
  readonly agent: string;
}

/**
 * The subject of what an agent is doing now, for live subscribers only:
 * `writ.progress.v1.<tenant>.<run_id>.<agent instance>` (SUP-1, SYS-6).
 * @throws InvalidRequestError INVALID_ID naming the token
 */
export function progressSubject({ tenant, runId, agent }: ProgressAddress): string {
  return [...runTokens({ tenant, runId }), idToken(agent, 'agent_id')].join('.');
}

/**
 * The subjects of all agents of one run of one tenant, to subscribe to.
 * @throws InvalidRequestError INVALID_ID naming the token
 */
export function progressOfRun(run: Omit<ProgressAddress, 'agent'>): string {
  return [...runTokens(run), '*'].join('.');
}

/** The agent instance that a subject of {@link progressSubject} names. */
export function progressAgent(subject: string): string {
  return subject.slice(subject.lastIndexOf('.') + 1);
}

/**
 * Whether `subject` falls under `pattern`, as NATS sees it: `*` stands for one token, `>` at the end
 * for one or more.
 */
export function matchSubject(pattern: string, subject: string): boolean {
  const wanted = pattern.split('.');
  const tokens = subject.split('.');
  for (const [index, want] of wanted.entries()) {
    const token = tokens[index];
    if (token === undefined) return false;
    if (want === '>') return index === wanted.length - 1;
    if (want !== '*' && want !== token) return false;
  }
  return wanted.length === tokens.length;
}

/**
 * Returns `subject` when something can be published to it: tokens, no wildcards.
 * @throws InvalidRequestError INVALID_SUBJECT
 */
export function assertSubject(subject: string): string {
  if (subject.split('.').every((token) => TOKEN.test(token))) return subject;
  throw badSubject('a subject to publish to must be tokens joined by dots, without wildcards');
}

/**
 * Returns `pattern` when it can be subscribed to: tokens, `*` for a whole one, `>` for the last.
 * @throws InvalidRequestError INVALID_SUBJECT
 */
export function assertPattern(pattern: string): string {
  const tokens = pattern.split('.');
  const valid = tokens.every(
    (token, index) =>
      token === '*' || (token === '>' && index === tokens.length - 1) || TOKEN.test(token),
  );
  if (valid) return pattern;
  throw badSubject('a subject to subscribe to must be tokens joined by dots; > only at the end');
}

function badSubject(sentence: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_SUBJECT', `Bad subject: ${sentence}.`, {
    field: 'subject',
  });
}

function runTokens({ tenant, runId }: Omit<ProgressAddress, 'agent'>): string[] {
  return [PROGRESS, idToken(tenant, 'tenant'), idToken(runId, 'run_id')];
}

function idToken(value: string | undefined, field: string): string {
  if (value === undefined) return ABSENT;
  if (value === ABSENT) {
    throw new InvalidRequestError('INVALID_ID', `${field} must not be -, which stands for none.`, {
      field,
    });
  }
  return assertId(value, field);
}

/** The durable consumer that carries every service's events into the timelines of runs (HK-1). */
export const TIMELINE_CONSUMER = 'supervisor-timeline';
