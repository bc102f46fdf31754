import type { ChatAnswer, EndReason, ProviderTerms, ToolUse } from '../../domain/chat/chat.ts';
import type { TokenUsage } from '../../domain/ledger/spending.ts';

type Fields = Readonly<Record<string, unknown>>;

interface PartialToolUse {
  id: string;
  tool: string;
  argumentsJson: string;
}

const END_REASONS: Readonly<Record<string, EndReason>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'content_filter',
};

/** Assembles an answer from the chunks of a provider, which are not trusted. */
export class AnswerBuilder {
  #text = '';
  #toolUses: PartialToolUse[] = [];
  #finishReason: string | undefined;
  #responseId: string | undefined;
  #model: string;
  #choices = 0;
  #usage: TokenUsage | undefined;
  #hasInvalidUsage = false;
  #isCut = false;

  /** @param model the model name when the provider reports none */
  constructor(model: string) {
    this.#model = model;
  }

  /** Texts of the answer so far, for a cost estimate. */
  get partial(): readonly string[] {
    return [
      this.#text,
      ...this.#toolUses.flatMap(({ tool, argumentsJson }) => [tool, argumentsJson]),
    ];
  }

  /** Usage reported by the provider. */
  get usage(): TokenUsage | undefined {
    return this.#usage;
  }

  /** How the provider described the answer; what is not like an id is omitted, since it may be content. */
  get terms(): ProviderTerms {
    const [responseId, finishReason] = [termOf(this.#responseId), termOf(this.#finishReason)];
    return {
      ...(responseId !== undefined && { responseId }),
      ...(finishReason !== undefined && { finishReason }),
    };
  }

  /** Whether a choice was received. */
  get hasAnswer(): boolean {
    return this.#choices > 0;
  }

  /** Whether a finish reason was received. */
  get isFinished(): boolean {
    return this.#finishReason !== undefined;
  }

  /** Adds one chunk of a stream; returns its text, and all content that it adds to the answer. */
  addChunk(chunk: object): { readonly text: string; readonly content: string } {
    const choice = this.#choiceOf(fieldsOf(chunk));
    if (choice === undefined) return { text: '', content: '' };
    const delta = fieldsOf(choice.delta);
    const calls = listOf(delta.tool_calls).map((call) => this.#addToolCall(fieldsOf(call)));
    const given = delta.content ?? delta.refusal;
    const text = typeof given === 'string' ? given : '';
    this.#text += text;
    return { text, content: text + calls.join('') };
  }

  /** Ends the answer at the requested limit, after the provider has exceeded it. */
  cut(): void {
    this.#finishReason = 'length';
    this.#isCut = true;
  }

  /** Sets the complete answer and returns its text. */
  addCompletion(completion: object): string {
    const choice = this.#choiceOf(fieldsOf(completion));
    if (choice === undefined) return '';
    const message = fieldsOf(choice.message);
    for (const [index, call] of listOf(message.tool_calls).entries()) {
      this.#addToolCall({ ...fieldsOf(call), index });
    }
    const text = message.content ?? message.refusal;
    this.#text = typeof text === 'string' ? text : '';
    return this.#text;
  }

  /** Returns the answer with its warnings (EM-9). */
  build(): { readonly answer: ChatAnswer; readonly warnings: readonly string[] } {
    const warnings: string[] = [];
    if (this.#isCut) {
      warnings.push('The provider sent more than the requested output; the answer was cut.');
    }
    // Some servers omit ids, which tool results reference.
    const toolUses: ToolUse[] = this.#toolUses.map((use, index) => ({
      ...use,
      id: use.id === '' ? `call_${index + 1}` : use.id,
    }));
    let endReason = END_REASONS[this.#finishReason ?? ''];
    if (endReason === undefined) {
      endReason = toolUses.length > 0 ? 'tool_use' : 'end_turn';
      warnings.push(
        this.#finishReason === undefined
          ? 'The stream closed before the provider sent a finish reason.'
          : 'The provider sent an unknown finish reason.',
      );
    }
    // Servers differ in the finish reason of an answer with tool calls.
    if (endReason === 'end_turn' && toolUses.length > 0) endReason = 'tool_use';
    if (this.#usage === undefined) {
      warnings.push(
        this.#hasInvalidUsage
          ? 'The provider reported invalid usage; usage is estimated.'
          : 'The provider reported no usage; usage is estimated.',
      );
    }
    const answer = { text: this.#text, toolUses, endReason, providerModel: this.#model };
    return { answer, warnings };
  }

  /** Records usage and model of an envelope and returns its first choice. */
  #choiceOf(envelope: Fields): Fields | undefined {
    const { usage, model, id } = envelope;
    if (typeof id === 'string' && id !== '') this.#responseId = id;
    if (usage !== undefined && usage !== null) {
      const read = readUsage(usage);
      if (read === undefined) this.#hasInvalidUsage = true;
      else this.#usage = read;
    }
    if (typeof model === 'string' && model !== '') this.#model = model;
    const [first] = listOf(envelope.choices);
    if (typeof first !== 'object' || first === null) return undefined;
    const choice = fieldsOf(first);
    this.#choices += 1;
    if (typeof choice.finish_reason === 'string') this.#finishReason = choice.finish_reason;
    return choice;
  }

  /** Returns the content that the call adds. */
  #addToolCall(call: Fields): string {
    const index = Number.isSafeInteger(call.index) ? Number(call.index) : this.#toolUses.length;
    if (index < 0 || index > MAX_TOOL_USES) return '';
    while (this.#toolUses.length <= index) {
      this.#toolUses.push({ id: '', tool: '', argumentsJson: '' });
    }
    const use = this.#toolUses[index];
    if (use === undefined) return '';
    const called = fieldsOf(call.function);
    if (typeof call.id === 'string' && call.id !== '') use.id = call.id;
    const name = typeof called.name === 'string' ? called.name : '';
    const args = typeof called.arguments === 'string' ? called.arguments : '';
    use.tool += name;
    use.argumentsJson += args;
    return name + args;
  }
}

/** An id or a finish reason of a provider. */
const TERM = /^[\w.:-]{1,128}$/;

function termOf(value: string | undefined): string | undefined {
  return value !== undefined && TERM.test(value) ? value : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Limit of the tool call index, which bounds memory for invalid indexes. */
const MAX_TOOL_USES = 1_023;

/** Upper bound of plausible token counts. */
const MAX_TOKEN_COUNT = 1_000_000_000;

/**
 * Reads the usage reported by a provider; undefined when it is missing, negative or implausible
 * (EM-8).
 */
function readUsage(usage: unknown): TokenUsage | undefined {
  const fields = fieldsOf(usage);
  const input = count(fields.prompt_tokens);
  const output = count(fields.completion_tokens);
  if (input === undefined || output === undefined) return undefined;
  const cached = count(fieldsOf(fields.prompt_tokens_details).cached_tokens) ?? 0n;
  const reasoning = count(fieldsOf(fields.completion_tokens_details).reasoning_tokens) ?? 0n;
  return {
    input,
    cachedInput: cached > input ? input : cached,
    output,
    reasoning: reasoning > output ? output : reasoning,
  };
}

function count(value: unknown): bigint | undefined {
  const valid = typeof value === 'number' && Number.isSafeInteger(value);
  return valid && value >= 0 && value <= MAX_TOKEN_COUNT ? BigInt(value) : undefined;
}

/** Returns the fields of an object, or no fields for any other value. */
function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
