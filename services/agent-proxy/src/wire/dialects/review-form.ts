import {
  canonicalDigest,
  type Fields,
  fieldsOf,
  PermissionDeniedError,
  textOf,
} from '@writ/kernel';

/** A tool call of an answer. The arguments are the bytes of the model; of a custom tool, its input text. */
export interface ModelToolCall {
  readonly id: string;
  readonly name: string;
  readonly argumentsJson: string;
}

/** A tool that the client offers the model. */
export interface OfferedTool {
  readonly name: string;
  /** Digest of its input schema; empty without one. */
  readonly schemaDigest: string;
  /** Digest of its whole definition. */
  readonly definitionDigest: string;
  /** Whether its calls carry a text in place of JSON. */
  readonly isCustom: boolean;
}

/** An answer whose calls were withheld, with a result for each of them. */
export interface WithheldTurn {
  readonly text: string;
  readonly calls: readonly (ModelToolCall & {
    readonly isCustom: boolean;
    readonly result: string;
  })[];
}

/**
 * When the client may have an event: `open` at once; `pending` with the next open one, or at the end; `held` when the tool
 * calls of the answer are decided, like everything after it.
 */
export type Release = 'open' | 'pending' | 'held';

/** How answers are reviewed in a dialect (AP-5): their tool calls are held, passed with the approved arguments, or withheld. */
export interface ReviewForm {
  /** The tools of a request. */
  offered(body: Fields): OfferedTool[];
  /** Begins to read an answer to a request. */
  answer(body: Fields): ReviewedAnswer;
  /** Returns the request that continues a turn whose calls were withheld; the model may do without another call. */
  continued(body: Fields, turn: WithheldTurn): Fields;
  /** Returns what makes one stream of the answers to a request and to those that continue it. */
  joiner(): Joiner;
}

/** An answer under review. */
export interface ReviewedAnswer {
  /** The ids of its tool calls so far. */
  readonly callIds: readonly string[];
  /**
   * Reads the next event, or a whole answer.
   * @throws PermissionDeniedError UNREVIEWABLE_OUTPUT for content that may be a call and cannot be reviewed
   */
  read(event: Fields): Release;
  /** Returns an event as the client gets it, with the approved calls: none, one or two events. */
  approved(event: Fields, calls: ReadonlyMap<string, ModelToolCall>): Fields[];
}

/** Makes one stream of several answers. */
export interface Joiner {
  /** Called before the events of another answer. */
  next(): void;
  /** Returns the event as a part of the stream; undefined when the stream has it already. */
  join(event: Fields): Fields | undefined;
}

/**
 * The tool choice of a request that continues a turn: a forced call would be refused again, so that only a free choice and
 * none remain.
 */
export function unforcedChoice(choice: unknown): Fields {
  const kind = typeof choice === 'string' ? choice : fieldsOf(choice).type;
  return kind === 'auto' || kind === 'none' ? { tool_choice: choice } : {};
}

/** A tool that a request offers the model. */
export function offeredTool(definition: unknown, name: unknown, schema: unknown): OfferedTool {
  return {
    name: textOf(name),
    schemaDigest: schema === undefined ? '' : canonicalDigest(schema),
    definitionDigest: canonicalDigest(definition),
    isCustom: fieldsOf(definition).type === 'custom' && schema === undefined,
  };
}

/** The error of content that may be a tool call and cannot be reviewed. */
export function unreviewable(what: string): PermissionDeniedError {
  return new PermissionDeniedError(
    'UNREVIEWABLE_OUTPUT',
    `The answer of the model has ${what}, which cannot be reviewed; it is withheld because of options.client_tools: review.`,
    {},
  );
}

/** The approved call with an id. */
export function approvedCall(
  calls: ReadonlyMap<string, ModelToolCall>,
  id: string | undefined,
): ModelToolCall {
  const call = id === undefined ? undefined : calls.get(id);
  if (call === undefined) throw unreviewable('a tool call without a decision');
  return call;
}

/** Returns the parsed arguments; an empty object for a text that is not JSON. */
export function inputOf(argumentsJson: string): unknown {
  try {
    return JSON.parse(argumentsJson);
  } catch {
    return {};
  }
}
