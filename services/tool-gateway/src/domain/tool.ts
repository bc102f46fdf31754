import {
  type ArgumentContract,
  compileContract,
  definitionDigest,
  InvalidRequestError,
  type JsonObject,
  omitUndefined,
} from '@writ/kernel';

/** Effect classes of tools (TG-6). */
export const SIDE_EFFECTS = ['read_only', 'idempotent', 'destructive'] as const;

/** One of {@link SIDE_EFFECTS}. */
export type SideEffect = (typeof SIDE_EFFECTS)[number];

/** A definition of a tool, from tools.yaml, its source and the defaults. */
export interface ToolDefinition {
  readonly name: string;
  /** Description for the model. */
  readonly description: string;
  /** JSON Schema (2020-12) of the arguments. */
  readonly inputSchema: JsonObject;
  readonly sideEffect: SideEffect;
  /** Timeout of one call, in milliseconds. */
  readonly timeoutMs: number;
  /** Largest result, in bytes. */
  readonly maxOutputBytes: number;
  /** Largest number of calls by one agent of a run. */
  readonly maxCallsPerAgent: number;
  /** Largest number of calls with the same arguments by one agent of a run. */
  readonly maxRepeats: number;
  /** From 0 to 1. */
  readonly risk: number;
  /** Name of its source. */
  readonly source: string;
}

/** Limits of the calls of one tool by one agent of a run. */
export type CallLimits = Pick<ToolDefinition, 'maxCallsPerAgent' | 'maxRepeats'>;

/** A tool that can be called: its definition, compiled, with its digest. */
export interface Tool extends ToolDefinition {
  readonly contract: ArgumentContract;
  /** SHA-256 of the definition, in hex; part of every writ (TG-1). */
  readonly digest: string;
  /** The limits that tools.yaml sets; the others come from the source, or are defaults. */
  readonly explicitLimits: Partial<CallLimits>;
}

/**
 * Compiles a definition (TG-3).
 * @param explicitLimits the limits that tools.yaml sets; default: all limits of the definition
 * @throws InvalidRequestError INVALID_ARGUMENT_CONTRACT when the schema is not a contract or an argument's schema
 *   cannot be read, NOT_SERIALIZABLE when the schema has no JSON form
 */
export function compileTool(
  definition: ToolDefinition,
  explicitLimits: Partial<CallLimits> = definition,
): Tool {
  const { maxCallsPerAgent, maxRepeats } = explicitLimits;
  const contract = compileContract(definition.inputSchema);
  const [unreadable] = contract.unreadable;
  if (unreadable !== undefined) {
    throw new InvalidRequestError(
      'INVALID_ARGUMENT_CONTRACT',
      `The argument contract is unusable: the schema of ${unreadable} is not valid JSON Schema 2020-12, or has a pattern with lookaround or backreferences.`,
      { field: `properties.${unreadable}` },
    );
  }
  return Object.freeze({
    ...definition,
    contract,
    digest: definitionDigest(definition),
    explicitLimits: omitUndefined({ maxCallsPerAgent, maxRepeats }),
  });
}
