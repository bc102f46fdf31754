import {
  canonicalDigest,
  type Fields,
  fieldsOf,
  PermissionDeniedError,
  textOf,
} from '@writ/kernel';

/**
 * A tool call of an answer. The arguments are the text that the model wrote: JSON, or the input text of a custom tool.
 */
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
  /** Whether the arguments of its calls are text instead of JSON. */
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
 * When an event is sent to the client: `open`: immediately; `pending`: with the next open event or at the end of the
 * answer; `held`: after the tool calls of the answer are decided, like all later events.
 */
export type Release = 'open' | 'pending' | 'held';

/**
 * The review of answers in a dialect (AP-5): tool calls are held until they are decided, and then sent with the
 * approved arguments or withheld.
 */
export interface ReviewForm {
  /** Returns the tools that a request offers to the model. */
  offered(body: Fields): OfferedTool[];
  /** Returns a reader for an answer to a request. */
  answer(body: Fields): ReviewedAnswer;
  /**
   * Returns the request that continues a turn whose calls were withheld; it does not force the model to call a tool.
   */
  continued(body: Fields, turn: WithheldTurn): Fields;
  /** Returns a joiner that combines the answers to a request and to its continuations into one stream. */
  joiner(): Joiner;
}

/** An answer under review. */
export interface ReviewedAnswer {
  /** The ids of the tool calls that have been read. */
  readonly callIds: readonly string[];
  /**
   * Reads the next event, or a whole answer.
   * @throws PermissionDeniedError UNREVIEWABLE_OUTPUT for content that may be a call and cannot be reviewed
   */
  read(event: Fields): Release;
  /** Returns the events to send to the client for an event, with the approved calls: none, one or two. */
  approved(event: Fields, calls: ReadonlyMap<string, ModelToolCall>): Fields[];
}

/** Combines several answers into one stream. */
export interface Joiner {
  /**
   * Begins another answer. Returns the events that end the content of the previous answers that the client has received
   * in part.
   */
  next(): Fields[];
  /** Returns the event as a part of the stream; undefined when the stream has it already. */
  join(event: Fields): Fields | undefined;
}

/**
 * Returns the tool choice for a request that continues a turn: only `auto` and `none` are kept, because a forced call
 * would be refused again.
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
