import { assertId, InvalidRequestError } from '@writ/kernel';

/** Every hook event of every tenant (HK-2). */
export const HOOK_SUBJECTS = 'writ.hooks.v1.>';

/** The copies of hook events for observers. The tokens after `writ.observed.v1` equal those after `writ.hooks.v1`. */
export const OBSERVED_SUBJECTS = 'writ.observed.v1.>';

/** The checkpoints of the audit chains of all tenants (SV-8). */
export const AUDIT_CHECKPOINT_SUBJECTS = 'writ.hooks.v1.*.-.-.AUDIT_CHECKPOINT';

const HOOKS = 'writ.hooks.v1';
const PROGRESS = 'writ.progress.v1';
const ABSENT = '-';
const EVENT = /^[A-Z][A-Z0-9_]{0,63}$/;
const TOKEN = /^[^\s.*>]+$/;

/** The parts of a hook subject; absent parts are omitted. */
export interface HookAddress {
  readonly tenant?: string | undefined;
  readonly runId?: string | undefined;
  readonly agent?: string | undefined;
  /** Name of the event, such as `LLM_START`. */
  readonly event: string;
}

/**
 * The subject of a hook event: `writ.hooks.v1.<tenant>.<run_id>.<agent_id>.<event>`, with `-` for
 * absent parts (HK-1, HK-2).
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

/** The agent of a progress message. */
export interface ProgressAddress {
  readonly tenant: string;
  readonly runId: string;
  /** The instance of the agent. */
  readonly agent: string;
}

/**
 * The subject of an agent's progress, for live subscribers only:
 * `writ.progress.v1.<tenant>.<run_id>.<agent instance>` (SUP-1, SYS-6).
 * @throws InvalidRequestError INVALID_ID naming the token
 */
export function progressSubject({ tenant, runId, agent }: ProgressAddress): string {
  return [...runTokens({ tenant, runId }), idToken(agent, 'agent_id')].join('.');
}

/**
 * The subject pattern for the progress of all agents of a run.
 * @throws InvalidRequestError INVALID_ID naming the token
 */
export function progressOfRun(run: Omit<ProgressAddress, 'agent'>): string {
  return [...runTokens(run), '*'].join('.');
}

/** The agent instance in a subject of {@link progressSubject}. */
export function progressAgent(subject: string): string {
  return subject.slice(subject.lastIndexOf('.') + 1);
}

/**
 * Whether `subject` matches `pattern` by the rules of NATS: `*` matches one token, a final `>` one or more.
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
 * Returns `subject` if it is valid for publishing: tokens without wildcards.
 * @throws InvalidRequestError INVALID_SUBJECT
 */
export function assertSubject(subject: string): string {
  if (subject.split('.').every((token) => TOKEN.test(token))) return subject;
  throw badSubject('a subject to publish to must be tokens separated by dots, without wildcards');
}

/**
 * Returns `pattern` if it is valid for subscribing: tokens, `*` for a whole token, `>` for the rest.
 * @throws InvalidRequestError INVALID_SUBJECT
 */
export function assertPattern(pattern: string): string {
  const tokens = pattern.split('.');
  const valid = tokens.every(
    (token, index) =>
      token === '*' || (token === '>' && index === tokens.length - 1) || TOKEN.test(token),
  );
  if (valid) return pattern;
  throw badSubject(
    'a subject to subscribe to must be tokens separated by dots, with > only at the end',
  );
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
    throw new InvalidRequestError(
      'INVALID_ID',
      `${field} must not be -, which marks an absent part.`,
      {
        field,
      },
    );
  }
  return assertId(value, field);
}

/** The durable consumer that records the events of every service in the timelines of runs (HK-1). */
export const TIMELINE_CONSUMER = 'supervisor-timeline';
