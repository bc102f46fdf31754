import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, type JsonSchema, loadYaml } from '@writ/config';

/** What a conformance tool does when it is run; by default it answers `{"status":"ok"}`. */
export interface ToolDoes {
  readonly result?: string;
  readonly text?: string;
  readonly image?: string;
  readonly fails?: string;
  readonly errs?: 'internal' | 'refused';
  readonly nothing?: boolean;
  /** Waits for an `answer` step. */
  readonly holds?: boolean;
  readonly hangs?: 'until_told' | 'for_ever';
}

/** A writ, or another token in its place, that is not what it should be. */
export interface TokenFault {
  readonly text?: string;
  readonly audience?: string;
  readonly kind?: string;
  /** A key that nobody vouches for: `unknown` says so, `forged` names the supervisor's. */
  readonly key?: 'unknown' | 'forged';
  readonly payload?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  /** Claims that are replaced after signing. */
  readonly changed?: Readonly<Record<string, unknown>>;
}

/** Who calls: a service of the verification, the worker of some tenants alone, or nobody. */
export type CallerName = 'worker' | 'supervisor' | 'nobody';

const CERTIFICATES = ['supervisor', 'agent-worker', 'tool-provider', 'stranger', 'none'] as const;

/** What a call shows in its handshake: a service's certificate, that of another authority, or nothing. */
export type CertificateName = (typeof CERTIFICATES)[number];

/** A call of a tool, with a writ that fits unless the step says otherwise. */
export interface CallFields {
  readonly tool?: string;
  readonly args?: unknown;
  readonly arguments_json?: string;
  readonly call_id?: string;
  readonly run?: string;
  readonly tenant?: string;
  readonly agent?: string;
  readonly step?: number;
  readonly epoch?: number | 'none';
  readonly writ?: Readonly<Record<string, unknown>>;
  readonly ttl?: string;
  readonly token?: TokenFault;
  readonly tool_does?: ToolDoes;
  /** That many at once, under the same writ. */
  readonly times?: number;
  readonly by?: CallerName;
  readonly certificate?: CertificateName;
  readonly serves?: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** One step: exactly one of the actions, and what is expected of it. */
export interface Step {
  readonly call?: CallFields;
  /** A call that is not waited for; `finish` waits for it. */
  readonly start?: CallFields;
  readonly finish?: string;
  /** The caller of a started call goes away. */
  readonly leave?: string;
  /** Waits until the tool runs for this call, for the nth time. */
  readonly runs?: { readonly call_id: string; readonly run?: string; readonly times?: number };
  /** Lets a tool that holds its answer give it. */
  readonly answer?: ToolDoes & { readonly call_id: string; readonly run?: string };
  /** Waits until the gateway has told the tool to stop. */
  readonly told?: { readonly call_id: string; readonly run?: string };
  readonly rpc?: string;
  readonly request?: Fields;
  readonly by?: CallerName;
  readonly certificate?: CertificateName;
  readonly agent_token?: Fields;
  readonly audience?: string;
  /** Waits until the receipt of a labelled answer was reported to the supervisor. */
  readonly reported?: string;
  /** Waits until an attempt to make this call was reported as refused for this reason. */
  readonly refusal_reported?: { readonly call_id: string; readonly reason: string };
  readonly health?: string;
  readonly reflection?: Fields;
  /** Kills the gateway and starts it again. */
  readonly restart?: true;
  /** Calls each vector's arguments twice, spelled differently: the second is a repeat (TG-4). */
  readonly args_hash_vectors?: string;
  readonly as?: string;
  readonly expect?: Fields;
  /** How often tools of this case have been executed by then. */
  readonly executed?: number;
}

/** One behaviour. */
export interface Case {
  readonly name: string;
  /** Ids of the promises that it proves. */
  readonly spec: readonly string[];
  /** Why a gateway must behave so. */
  readonly why: string;
  readonly steps: readonly Step[];
}

/** Behaviours of one topic. */
export interface Table {
  /** Name of its file, without the extension. */
  readonly name: string;
  readonly about: string;
  /** Cases that touch one another, one after the other; else they run together. */
  readonly oneByOne: boolean;
  readonly cases: readonly Case[];
}

interface CaseDocument extends Case {
  readonly each?: readonly Fields[];
}

interface TableDocument {
  readonly about: string;
  readonly one_by_one?: boolean;
  readonly cases: readonly CaseDocument[];
}

const ACTIONS = [
  ...['call', 'start', 'finish', 'leave', 'runs', 'answer', 'told', 'rpc', 'reported'],
  ...['refusal_reported', 'health', 'reflection', 'restart', 'args_hash_vectors'],
] as const;

/** Fields, or a `${name}` that stands for them. */
const FIELDS: JsonSchema = { type: ['object', 'string'] };

const SCHEMA: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['about', 'cases'],
  properties: {
    about: { type: 'string' },
    one_by_one: { type: 'boolean' },
    cases: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'spec', 'why', 'steps'],
        properties: {
          name: { type: 'string', minLength: 1 },
          spec: {
            type: 'array',
            minItems: 1,
            items: { type: 'string', pattern: '^[A-Z]{2,3}-[0-9]+$' },
          },
          why: { type: 'string', minLength: 1 },
          each: { type: 'array', minItems: 1, items: { type: 'object', required: ['name'] } },
          steps: {
            type: 'array',
            minItems: 1,
            items: {
              type: 'object',
              additionalProperties: false,
              properties: {
                ...Object.fromEntries(ACTIONS.map((action) => [action, true])),
                request: FIELDS,
                by: { enum: ['worker', 'supervisor', 'nobody'] },
                certificate: { enum: CERTIFICATES },
                agent_token: FIELDS,
                audience: { type: 'string' },
                as: { type: 'string' },
                expect: FIELDS,
                executed: { type: 'integer', minimum: 0 },
              },
            },
          },
        },
      },
    },
  },
};

/**
 * Loads every table of a folder, in the order of their names; a case with `each` becomes one for
 * every row of it, whose values stand for `${name}` in the case.
 * @throws ConfigError naming file, line and column of what is wrong
 */
export function loadTables(folder: string): readonly Table[] {
  const files = readFiles(folder).filter((file) => file.endsWith('.yaml'));
  if (files.length === 0) throw new ConfigError(folder, [`${folder} holds no tables.`]);
  return files.map((file) => {
    const { value, locate } = loadYaml<TableDocument>(join(folder, file), SCHEMA);
    for (const [at, { steps }] of value.cases.entries()) {
      for (const [index, step] of steps.entries()) {
        if (ACTIONS.filter((action) => Object.hasOwn(step, action)).length === 1) continue;
        const place = locate(['cases', at, 'steps', index]);
        throw new ConfigError(file, [`${place}: a step has exactly one of ${ACTIONS.join(', ')}.`]);
      }
    }
    return {
      name: file.replace(/\.yaml$/, ''),
      about: value.about,
      oneByOne: value.one_by_one ?? false,
      cases: value.cases.flatMap(expand),
    };
  });
}

function readFiles(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (cause) {
    throw new ConfigError(folder, [`${folder} cannot be read.`], { cause });
  }
}

function expand({ each, ...one }: CaseDocument): readonly Case[] {
  if (each === undefined) return [one];
  return each.map((row) => filled(one, row) as Case);
}

/** `${name}` alone becomes the value itself, within a text its text. */
function filled(value: unknown, row: Fields): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => filled(item, row));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, row)]));
  }
  if (typeof value !== 'string') return value;
  const whole = /^\$\{(\w+)\}$/.exec(value)?.[1];
  if (whole !== undefined && Object.hasOwn(row, whole)) return row[whole];
  return value.replace(/\$\{(\w+)\}/g, (text, name: string) =>
    Object.hasOwn(row, name) ? String(row[name]) : text,
  );
}
