import type { Finished } from '@writ/contracts/writ/model/v1/model_pb';
import {
  type AgentKey,
  canonicalJson,
  derivedId,
  type Fields,
  fieldsOf,
  isWritError,
  parseJsonStrict,
  textOf,
} from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import type { AnswerReview } from '../../domain/answer-review.ts';
import { type AgentRow, keyOf } from '../../store/agents.ts';
import { type Dialect, partsOf, type Recorded } from '../../wire/dialects/dialect.ts';
import {
  type ModelToolCall,
  type OfferedTool,
  type ReviewedAnswer,
  unreviewable,
} from '../../wire/dialects/review-form.ts';
import { refusalText } from '../../wire/refusal-text.ts';
import { endedWithText, withCalls } from '../../wire/reviewed-answer.ts';
import { endAgent } from '../agent/end-agent.ts';
import type { RequestInProgress } from '../agent/requests-in-progress.ts';
import {
  continueModel,
  type ModelCall,
  type ModelEvent,
  type ModelRequest,
} from '../model/call-model.ts';
import type { ClientToolRequest } from './number-client-tool.ts';
import { decideCalls, mustWait, proposeCalls } from './review-calls.ts';
import type { ProposedCall } from './review-client-tool.ts';
import { servedNames } from './served-tools.ts';

const WITHHELD =
  'Not executed, because another call of the same turn was refused. Propose it again if it is still needed.';

/** A request whose answers are reviewed. */
export interface ReviewedRequest {
  readonly dialect: Dialect;
  readonly request: ModelRequest;
  /** Its body, parsed. */
  readonly body: Fields;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

/** An answer that has ended, with the events that the client does not have yet. */
interface EndedAnswer {
  readonly answer: ReviewedAnswer;
  readonly held: readonly Fields[];
  /**
   * Whether the answer was received as events that can be sent to the client. False for a recorded answer, and when the
   * client requested a stream but the provider does not support streaming and sent one complete answer.
   */
  readonly hasEvents: boolean;
  readonly finished: Finished;
}

/**
 * Returns a model call whose tool calls are reviewed before the client gets them (AP-5), or the call itself when
 * options.client_tools of the agent is not `review`. Text is sent immediately, unless the provider stores the answer
 * (dialect `responses`) and the request offers tools; tool calls and all events after them are sent when all calls are
 * decided. When a call is refused, the answer is withheld and the turn is continued with the model, which gets the
 * reason, at most `maxRefusals` times; after that, or when a refusal ends the run, the client gets a text in place of
 * the calls.
 */
export function reviewedCall(context: ProxyContext, call: CallToReview): ModelCall {
  const { agent, first } = call;
  if (agent.review === null) return first;
  const review = JSON.parse(agent.review) as AnswerReview;
  const reviewer = new AnswerReviewer({ context, review, ...call });
  return { ...first, events: reviewer.events() };
}

/** A model call of an agent, with the request that it answers. */
interface CallToReview {
  readonly agent: AgentRow;
  readonly reviewed: ReviewedRequest;
  readonly open: RequestInProgress;
  /** The first call of the turn; after a refusal, the turn continues with further calls. */
  readonly first: ModelCall;
}

interface ReviewerParts extends CallToReview {
  readonly context: ProxyContext;
  readonly review: AnswerReview;
}

class AnswerReviewer {
  readonly #parts: ReviewerParts;
  readonly #key: AgentKey;
  readonly #joiner;
  #offered: readonly OfferedTool[] | undefined;
  #hasSent = false;
  #cost = 0n;

  constructor(parts: ReviewerParts) {
    this.#parts = parts;
    this.#key = keyOf(parts.agent);
    this.#joiner = parts.reviewed.dialect.review.joiner();
  }

  async *events(): AsyncGenerator<ModelEvent, void, undefined> {
    const { reviewed, review, first } = this.#parts;
    const form = reviewed.dialect.review;
    let { body } = reviewed;
    let call = first;
    for (let refusals = 0; ; refusals += 1) {
      const ended = yield* this.#pass(call);
      if (ended === undefined) return;
      this.#cost += ended.finished.costNanoUsd;
      const { text, calls } = partsOf(ended);
      if (calls.length === 0) return yield* this.#release(ended, new Map());
      this.#assertReviewable(ended, calls);
      const decided = yield* this.#decide(call, calls);
      if ('approved' in decided) return yield* this.#release(ended, decided.approved);
      const { refused } = decided;
      if (review.endsRun || refusals === review.maxRefusals) {
        return yield* this.#stop(ended, refused);
      }
      const results = calls.map((proposed) => ({
        ...proposed,
        isCustom: this.#offeredAs(proposed.name)?.isCustom === true,
        result:
          proposed.id === refused.request.toolUseId
            ? refusalText(proposed.name, refused.decision)
            : WITHHELD,
      }));
      body = form.continued(body, { text, calls: results });
      yield* this.#next();
      call = this.#continue(body);
    }
  }

  /**
   * Forwards the events that the client may receive immediately, and returns the remaining events when the answer ends;
   * returns undefined when the call fails.
   */
  async *#pass(call: ModelCall): AsyncGenerator<ModelEvent, EndedAnswer | undefined, undefined> {
    const { dialect, stream, body } = this.#parts.reviewed;
    const answer = dialect.review.answer(body);
    let held: Fields[] = [];
    let isHeld = false;
    let wasRead = false;
    let hasEvents = false;
    for await (const event of call.events) {
      if (event.type === 'finished') {
        const { finished } = event;
        if (finished.failure === undefined) {
          // A recorded answer has no events; it is rejected for the same content as the answer of a provider.
          if (!wasRead) answer.read(fieldsOf(dialect.whole(this.#recorded(finished))));
          return { answer, held, hasEvents, finished };
        }
        yield event;
      }
      if (event.type !== 'event') continue;
      const text = Buffer.from(event.json).toString();
      const fields = fieldsOf(JSON.parse(text));
      const release = answer.read(fields);
      wasRead = true;
      // A provider that does not support streaming sends one complete answer; the client gets events that are created
      // from the record of the answer.
      if (stream && dialect.isWhole(text.slice(0, 512))) continue;
      hasEvents = true;
      isHeld ||= release === 'held';
      held.push(fields);
      if (isHeld || release !== 'open') continue;
      yield* this.#send(held);
      held = [];
    }
    return undefined;
  }

  *#send(events: readonly Fields[]): Generator<ModelEvent, void, undefined> {
    for (const event of events) {
      const joined = this.#joiner.join(event);
      if (joined === undefined) continue;
      this.#hasSent = true;
      yield eventOf(joined);
    }
  }

  /** Ends the content that the client has received in part, before the events of another answer. */
  *#next(): Generator<ModelEvent, void, undefined> {
    for (const event of this.#joiner.next()) yield eventOf(event);
  }

  /** Sends the rest of an answer, with its approved calls. */
  *#release(
    { answer, held, hasEvents, finished }: EndedAnswer,
    approved: ReadonlyMap<string, ModelToolCall>,
  ): Generator<ModelEvent, void, undefined> {
    yield* this.#send(held.flatMap((event) => answer.approved(event, approved)));
    yield* this.#finish(withCalls(finished, approved), hasEvents);
  }

  /** Ends the turn with a text in place of the refused calls. */
  async *#stop(
    { finished }: EndedAnswer,
    { request, decision }: ProposedCall,
  ): AsyncGenerator<ModelEvent, void, undefined> {
    const { context, agent, review, first } = this.#parts;
    if (review.endsRun) {
      const requestId = derivedId('req', agent.run_id, agent.instance, first.callId, 'refused');
      const reason = decision.stopReason || 'human_rejected';
      await endAgent(context, agent, reason, requestId);
    }
    const text = refusalText(request.tool, decision);
    yield* this.#next();
    yield* this.#finish(endedWithText(finished, text), false);
  }

  /**
   * Ends the answer. When it has no events to send and a stream has already begun, creates the events from the record.
   */
  *#finish(finished: Finished, hasEvents: boolean): Generator<ModelEvent, void, undefined> {
    const { dialect, stream } = this.#parts.reviewed;
    if (!hasEvents && this.#hasSent && stream) {
      yield* this.#send(dialect.events(this.#recorded(finished)).map(fieldsOf));
    }
    yield { type: 'finished', finished: { ...finished, costNanoUsd: this.#cost } };
  }

  #recorded(finished: Finished): Recorded {
    const { first, reviewed } = this.#parts;
    const { request, includeUsage, body } = reviewed;
    return { finished, callId: first.callId, model: request.model, includeUsage, body };
  }

  /**
   * Returns the decision on the calls of an answer: the approved calls or the refused one. Yields `waiting` before it
   * waits for a person.
   */
  async *#decide(call: ModelCall, calls: readonly ModelToolCall[]) {
    const { context, open, review } = this.#parts;
    const served = await servedNames(context, this.#key, this.#tools, calls);
    const requests = calls
      .filter(({ name }) => !served.has(name))
      .map((proposed) => this.#requestOf(call, proposed));
    const proposed = await proposeCalls(context, this.#key, requests);
    if (mustWait(proposed)) yield { type: 'waiting' } as const;
    const decided = await decideCalls(context, this.#key, proposed, {
      holdMs: review.holdMs,
      signal: open.signal,
      onWait: (isWaiting) => {
        open.isWaiting = isWaiting;
      },
    });
    if ('refused' in decided) return decided;
    const entries = calls.map((one) => {
      const json = decided.approved.get(one.id);
      return [one.id, json === undefined ? one : this.#approvedCall(one, json)] as const;
    });
    return { approved: new Map(entries) };
  }

  #requestOf({ callId }: ModelCall, call: ModelToolCall): ClientToolRequest {
    const { id, name } = call;
    const { definitionDigest = '' } = this.#offeredAs(name) ?? {};
    const argumentsJson = this.#argumentsOf(call);
    return { tool: name, argumentsJson, toolUseId: id, modelCallId: callId, definitionDigest };
  }

  /**
   * Returns the RFC 8785 form of the arguments. The text of a custom tool becomes the field `input` of an object; for
   * other tools, an empty text becomes `{}`. Any other text that is not JSON is returned unchanged, and the supervisor
   * rejects it.
   */
  #argumentsOf({ name, argumentsJson: json }: ModelToolCall): string {
    if (this.#offeredAs(name)?.isCustom === true) return canonicalJson({ input: json });
    try {
      return canonicalJson(parseJsonStrict(json === '' ? '{}' : json, { field: 'arguments' }));
    } catch (error) {
      if (isWritError(error)) return json;
      throw error;
    }
  }

  /** Returns the call with the approved arguments; unchanged arguments keep the model's bytes. */
  #approvedCall(call: ModelToolCall, json: string): ModelToolCall {
    if (json === this.#argumentsOf(call)) return call;
    if (this.#offeredAs(call.name)?.isCustom !== true) return { ...call, argumentsJson: json };
    const { input } = fieldsOf(JSON.parse(json));
    return { ...call, argumentsJson: textOf(input) };
  }

  /** The tools of the request, read when the first call needs them. */
  get #tools(): readonly OfferedTool[] {
    const { dialect, body } = this.#parts.reviewed;
    this.#offered ??= dialect.review.offered(body);
    return this.#offered;
  }

  #offeredAs(name: string): OfferedTool | undefined {
    return this.#tools.find((tool) => tool.name === name);
  }

  #continue(body: Fields): ModelCall {
    const { context, agent, reviewed, open, first } = this.#parts;
    const request = { ...reviewed.request, body: Buffer.from(JSON.stringify(body)) };
    return continueModel(context, agent, { ...request, firstCallId: first.callId }, open);
  }

  /**
   * Throws UNREVIEWABLE_OUTPUT when a tool call has no unique id or no name, or when the tool calls that the client
   * would receive differ from those that the meter has read.
   */
  #assertReviewable({ answer }: EndedAnswer, calls: readonly ModelToolCall[]): void {
    const ids = new Set(calls.map(({ id }) => id));
    const isComplete = calls.every(({ id, name }) => id !== '' && name !== '');
    const isSame = answer.callIds.length === ids.size && answer.callIds.every((id) => ids.has(id));
    if (isComplete && ids.size === calls.length && isSame) return;
    throw unreviewable('tool calls without a unique id or without a name');
  }
}

function eventOf(fields: Fields): ModelEvent {
  return { type: 'event', json: Buffer.from(JSON.stringify(fields)) };
}
