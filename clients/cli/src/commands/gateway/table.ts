import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, type JsonSchema, loadYaml } from '@writ/config';

/** Behavior of a conformance tool; by default it returns `{"status":"ok"}`. */
export interface ToolBehavior {
  /** JSON of the result. */
  readonly result?: string;
  /** Text of a text result. */
  readonly text?: string;
  /** URL of an image result. */
  readonly image?: string;
  /** Message of the failure that the tool returns. */
  readonly fails?: string;
  /** Error with which the RPC of the tool fails: INTERNAL, or INVALID_ARGUMENT for `refused`. */
  readonly errs?: 'internal' | 'refused';
  /** Returns a response without an outcome. */
  readonly nothing?: boolean;
  /** Waits for an `answer` step, which defines the response. */
  readonly holds?: boolean;
  /** Never returns; with `until_cancelled`, fails when the gateway cancels the call. */
  readonly hangs?: 'until_cancelled' | 'forever';
}

/** Changes that make the writ of a call invalid. */
export interface WritFault {
  /** Text that is sent instead of the writ. */
  readonly text?: string;
  readonly audience?: string;
  readonly kind?: string;
  /**
   * A signing key that is not the supervisor's: `unknown` uses a different key id, `forged` the supervisor's key id.
   */
  readonly key?: 'unknown' | 'forged';
  readonly payload?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  /** Claims that are replaced after signing. */
  readonly changed?: Readonly<Record<string, unknown>>;
}

/** The caller: a simulated service, or `anonymous` for a call without a token. */
export type CallerName = 'worker' | 'supervisor' | 'anonymous';

const CERTIFICATES = ['supervisor', 'agent-worker', 'tool-provider', 'untrusted', 'none'] as const;

/** Client certificate: that of a service, one of another CA (`untrusted`), or none. */
export type CertificateName = (typeof CERTIFICATES)[number];

/** A tool call, with a matching writ unless the step says otherwise. */
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
  /** Claims that replace or extend the default claims of the writ. */
  readonly writ?: Readonly<Record<string, unknown>>;
  readonly ttl?: string;
  /** Makes the writ invalid. */
  readonly token?: WritFault;
  readonly tool_does?: ToolBehavior;
  /** The tool returned a result, and the gateway has deleted it (SUP-4): only its digest remains, in the receipt. */
  readonly result_deleted?: boolean;
  /** Number of concurrent calls under the same writ. */
  readonly times?: number;
  readonly by?: CallerName;
  readonly certificate?: CertificateName;
  /** Tenants in the service token of the caller; default: none, which permits all tenants. */
  readonly serves?: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** One step: exactly one action, and its expectations. */
export interface Step {
  readonly call?: CallFields;
  /** Starts a call; `finish` waits for it. */
  readonly start?: CallFields;
  readonly finish?: string;
  /** Disconnects the caller of a started call. */
  readonly disconnect?: string;
  /** Waits until `times` executions of the tool (default 1) have started for this call. */
  readonly runs?: { readonly call_id: string; readonly run?: string; readonly times?: number };
  /** Releases a tool that holds its response. */
  readonly answer?: ToolBehavior & { readonly call_id: string; readonly run?: string };
  /** Waits until the gateway cancels the tool. */
  readonly cancelled?: { readonly call_id: string; readonly run?: string };
  readonly rpc?: string;
  readonly request?: Fields;
  readonly by?: CallerName;
  readonly certificate?: CertificateName;
  readonly agent_token?: Fields;
  /** Lease epoch of the worker in an RPC; default 1. */
  readonly epoch?: number;
  readonly audience?: string;
  /**
   * Waits until the gateway has twice reported the receipt of the response with this label. The simulated supervisor
   * does not acknowledge the first report.
   */
  readonly reported?: string;
  /** Waits until a refusal of this call with this reason is reported. */
  readonly refusal_reported?: { readonly call_id: string; readonly reason: string };
  readonly health?: string;
  readonly reflection?: Fields;
  /** Kills and restarts the gateway. */
  readonly restart?: true;
  /**
   * Path of a file of test vectors. Calls the tool `echo` with the arguments of each vector in two JSON encodings, and
   * expects the gateway to report every call after the first with the same hash as a repeat (TG-4).
   */
  readonly args_hash_vectors?: string;
  /** Label of the response or of the started call, for later steps. */
  readonly as?: string;
  readonly expect?: Fields;
  /** Expected number of tool executions in this case up to this step. */
  readonly executed?: number;
}

/** One test case. */
export interface Case {
  readonly name: string;
  /** SPEC ids that the case tests. */
  readonly spec: readonly string[];
  /** Rationale of the requirement. */
  readonly why: string;
  readonly steps: readonly Step[];
}

/** The test cases of one topic. */
export interface Table {
  /** Name of its file, without the extension. */
  readonly name: string;
  readonly about: string;
  /** Runs the cases sequentially; otherwise they run concurrently. */
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
  ...['call', 'start', 'finish', 'disconnect', 'runs', 'answer', 'cancelled', 'rpc', 'reported'],
  ...['refusal_reported', 'health', 'reflection', 'restart', 'args_hash_vectors'],
] as const;

/** Schema of an object of fields, or of a text `${name}` that is replaced by the value `name` of the row. */
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
                by: { enum: ['worker', 'supervisor', 'anonymous'] },
                certificate: { enum: CERTIFICATES },
                agent_token: FIELDS,
                epoch: { type: 'integer', minimum: 0 },
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
 * Loads every table of a folder, ordered by name. A case with `each` becomes one case for each row, with `${name}`
 * replaced by the values of the row.
 * @throws ConfigError; for an invalid table, with file, line and column
 */
export function loadTables(folder: string): readonly Table[] {
  const files = readFiles(folder).filter((file) => file.endsWith('.yaml'));
  if (files.length === 0) throw new ConfigError(folder, [`${folder} contains no tables.`]);
  return files.map((file) => {
    const { value, locate } = loadYaml<TableDocument>(join(folder, file), SCHEMA);
    for (const [at, { steps }] of value.cases.entries()) {
      for (const [index, step] of steps.entries()) {
        if (ACTIONS.filter((action) => Object.hasOwn(step, action)).length === 1) continue;
        const place = locate(['cases', at, 'steps', index]);
        throw new ConfigError(file, [
          `${place}: a step must have exactly one of ${ACTIONS.join(', ')}.`,
        ]);
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

/**
 * Replaces each `${name}` in the strings of `value` by the field `name` of the row. A string that consists only of
 * `${name}` becomes the field itself, which need not be a string. A name that the row lacks is not replaced.
 */
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
