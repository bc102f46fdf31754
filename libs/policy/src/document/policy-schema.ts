import { omitUndefined } from '@writ/kernel';
import { ACTION_KINDS, type MATCH_KEYS } from '../review/match.ts';
import { RULE_VERDICTS } from '../types.ts';
import { PRIORITY_NAMES } from './read-match.ts';

/** A JSON Schema as data. */
export type Schema = Readonly<Record<string, unknown>>;

/** An object of a policy document; the readers accept exactly its keys. */
interface ObjectSchema<K extends string> extends Schema {
  readonly properties: Readonly<Record<K, Schema>>;
}

function about(description: string, schema: Schema, byDefault?: string): Schema {
  return { ...schema, description, ...omitUndefined({ 'x-default': byDefault }) };
}

function object<K extends string>(
  properties: Readonly<Record<K, Schema>>,
  required: readonly NoInfer<K>[] = [],
): ObjectSchema<K> {
  return { type: 'object', additionalProperties: false, properties, required };
}

/** Returns the keys that an object of the document accepts. */
export function keysOf<K extends string>({ properties }: ObjectSchema<K>): readonly K[] {
  return Object.keys(properties) as K[];
}

const TEXT = { type: 'string' };
const CEL = { type: ['string', 'number', 'boolean'], 'x-expected': 'a CEL expression' };
const PATTERN = { ...TEXT, 'x-expected': 'a name, in which * matches any characters' };
const LITERAL = { type: ['string', 'number', 'boolean'] };
const oneOrMore = (item: Schema) => ({
  anyOf: [item, { type: 'array', minItems: 1, items: item }],
});
const PATTERNS = { ...oneOrMore(PATTERN), 'x-expected': 'a name or pattern, or a list of them' };

/** One argument of `set`. */
export const ADJUSTMENT = object({
  value: about('New value of the argument.', LITERAL),
  fill: about('Value of the argument when it is missing or blank.', LITERAL),
  cel: about('Expression of the new value.', CEL),
  min: about('Expression of the smallest value.', CEL),
  max: about('Expression of the largest value.', CEL),
});

const MATCH = object({
  kind: about(
    'Kind of the action.',
    {
      ...oneOrMore({ enum: ACTION_KINDS }),
      'x-expected': '`tool`, `final`, `delegation`, `client_tool`, or a list of them',
    },
    'any',
  ),
  tool: about(
    'Tool; only tool calls match. A tool that the client executes matches only with `kind: client_tool`.',
    PATTERNS,
    'any',
  ),
  target: about(
    'Target agent of a delegation; actions of other kinds do not match.',
    PATTERNS,
    'any',
  ),
  agent: about('Agent that proposes the action.', PATTERNS, 'any'),
  priority: about(
    'Priority of that agent.',
    {
      ...oneOrMore({ enum: PRIORITY_NAMES }),
      'x-expected': '`BACKGROUND`, `LOW`, `NORMAL`, `HIGH`, `CRITICAL`, or a list of them',
    },
    'any',
  ),
  tenant: about('Tenant of the run.', PATTERNS, 'any'),
} satisfies Record<(typeof MATCH_KEYS)[number], Schema>);

/** One rule. */
export const RULE = object(
  {
    id: about('Unique name, recorded with every decision of the rule.', TEXT),
    about: about('Comment.', TEXT, 'empty'),
    match: about(
      'Conditions on the action; every condition that is set must match.',
      MATCH,
      'any action',
    ),
    when: about('CEL expression that must also be true for the rule to match.', CEL, 'true'),
    decide: about('The decision.', { enum: RULE_VERDICTS }),
    reason: about('Reason code; may end in `:{tool}`, `:{kind}`, `:{agent}` or `:{target}`.', TEXT),
    risk: about(
      'Risk of the action, in percent; approvals, traces and audit records show 80 as 0.8.',
      { type: 'integer', minimum: 0, maximum: 100 },
      '0',
    ),
    set: about(
      'Changed arguments by name, for `revise`.',
      { type: 'object', additionalProperties: ADJUSTMENT },
      'none',
    ),
    editable: about(
      'Arguments that an approver may change.',
      { type: 'array', items: TEXT },
      'those of `human.editable`',
    ),
  },
  ['id', 'decide', 'reason'],
);

/** An update of a cap. */
export const CAP_UPDATE = object(
  {
    tool: about('Tool whose calls count.', PATTERN),
    count: about(
      'Amount that is added to the fact from the approval of a call until its receipt.',
      CEL,
    ),
    when: about('Whether a successful call still counts after its receipt.', CEL, 'true'),
    add: about(
      'Amount that replaces `count` after the receipt of a successful call.',
      CEL,
      'that of `count`',
    ),
    if_failed: about(
      'Whether the amount of a failed call still counts.',
      { enum: ['counts', 'ignored'] },
      'counts',
    ),
  },
  ['tool', 'count'],
);

/** An update of a gate. */
export const GATE_UPDATE = object(
  {
    tool: about('Tool whose receipts change the fact.', PATTERN),
    when: about('Whether the receipt of a successful call changes the fact.', CEL, 'true'),
    set: about('The new value.', CEL),
  },
  ['tool', 'set'],
);

/** One fact. */
export const FACT = object(
  {
    kind: about(
      'Kind of the fact: a `cap` counts a call as soon as it is approved; a `gate` changes only when a receipt arrives.',
      {
        enum: ['cap', 'gate'],
      },
    ),
    type: about(
      'Type of the value; `cents` are whole US cents.',
      { enum: ['bool', 'int', 'string', 'cents'] },
      'that of `initial`',
    ),
    initial: about('Value at the start of a run.', LITERAL),
    about: about('Comment.', TEXT, 'empty'),
    updates: about(
      'Changes of the fact by tool calls.',
      {
        type: 'array',
        items: {
          oneOf: [
            { title: 'of a cap', ...CAP_UPDATE },
            { title: 'of a gate', ...GATE_UPDATE },
          ],
        },
      },
      'none',
    ),
  },
  ['kind', 'initial'],
);

/** One entry of `human.caps`. */
export const HUMAN_CAP = object(
  {
    tool: about('Tool.', PATTERN),
    argument: about('Argument that is capped.', TEXT),
    max: about('Maximum value; set either this or `max_usd`.', { type: 'number', minimum: 0 }),
    max_usd: about(
      'Largest amount in USD; the argument must be an amount in USD with at most two decimals.',
      {
        type: 'number',
        minimum: 0,
      },
    ),
    approver: about('Approvers that the cap applies to.', PATTERN, '*'),
    role: about('Roles that the cap applies to.', PATTERN, '*'),
  },
  ['tool', 'argument'],
);

/** One entry of `human.editable`. */
export const EDITABLE = object(
  {
    tool: about('Tool.', PATTERN),
    arguments: about('Arguments that an approver may change.', { type: 'array', items: TEXT }),
  },
  ['tool', 'arguments'],
);

/** One entry of `outcomes`. */
export const OUTCOME = object(
  {
    tool: about('Tool.', PATTERN),
    ok_when: about(
      'Whether a result of the tool counts as success, in the audit record and among the effects of the run.',
      CEL,
    ),
  },
  ['tool', 'ok_when'],
);

/** The section `human.evidence`. */
export const EVIDENCE = object({
  goal: about('Whether approvers see the goal.', { type: 'boolean' }, 'true'),
  history: about('Whether approvers see the earlier steps.', { type: 'boolean' }, 'true'),
  facts: about(
    'Facts that approvers see: true for all, or their names.',
    {
      anyOf: [{ type: 'boolean' }, { type: 'array', items: TEXT }],
      'x-expected': '`true`, `false` or a list of facts',
    },
    'true',
  ),
  observations: about(
    'Tools whose results approvers see.',
    { type: 'array', items: PATTERN },
    'none',
  ),
});

/** The section `human`. */
export const HUMAN = object({
  caps: about(
    'Limits on the arguments that approvers can approve.',
    { type: 'array', items: HUMAN_CAP },
    'none',
  ),
  editable: about(
    'Arguments that approvers may change, by tool.',
    { type: 'array', items: EDITABLE },
    'the arguments that have a cap',
  ),
  evidence: about(
    'Information about the run that approvers see.',
    EVIDENCE,
    'goal, history and all facts',
  ),
  four_eyes: about(
    'Actions that the person who started the run must not approve: true (all), false (none), or tools.',
    {
      anyOf: [{ type: 'boolean' }, { type: 'array', items: PATTERN }],
      'x-expected': '`true`, `false` or a list of tools',
    },
    'true, except for the owner of the development key',
  ),
});

/** JSON Schema of a policy document; expressions and references are checked by the loader. */
export const POLICY_SCHEMA = object(
  {
    policy: about('Name of the policy.', TEXT),
    about: about('Comment.', TEXT, 'empty'),
    limits: about(
      'Constants by name for expressions: strings, numbers, booleans, lists of strings, or amounts such as `{ usd: 1000 }`, which expressions read in cents.',
      { type: 'object' },
      'none',
    ),
    facts: about(
      'Facts about the completed and approved calls of a run, by name.',
      { type: 'object', additionalProperties: FACT },
      'none',
    ),
    outcomes: about(
      'Conditions, by tool, under which a result counts as success.',
      { type: 'array', items: OUTCOME },
      'success if the result has no `error` and its `status` is not error, failed or failure',
    ),
    rules: about(
      'Rules in order; the first rule that matches decides, and an action that matches no rule is blocked.',
      { type: 'array', items: RULE },
    ),
    human: about('Approvals by people.', HUMAN, 'no caps'),
  },
  ['policy', 'rules'],
);
