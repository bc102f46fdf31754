import { type Fields, fieldsOf, omitUndefined } from '@writ/kernel';
import type {
  ChatAnswer,
  EndReason,
  IssuedIds,
  ProviderTerms,
  ToolUse,
} from '../../domain/chat/chat.ts';
import type { AnswerPart, Dialect, ToolUsePart } from '../../domain/dialects/dialect.ts';
import { NO_USAGE, type TokenUsage } from '../../domain/ledger/spending.ts';
import { AnswerBlocks } from './answer-blocks.ts';

/** Assembles an answer from the untrusted parts that a provider sends. */
export class AnswerBuilder {
  readonly #dialect: Dialect;
  #text = '';
  #otherContent = '';
  readonly #toolUses = new Map<number, ToolUse>();
  readonly #blocks = new AnswerBlocks();
  #finishReason: string | undefined;
  #endReason: EndReason | undefined;
  #responseId = '';
  readonly #itemIds = new Set<string>();
  #model: string;
  #hasAnswer = false;
  #reported: Fields = {};
  #usage: TokenUsage | undefined;
  #hasInvalidUsage = false;
  #isCut = false;

  /** @param model the model name that is used when the provider reports no model name */
  constructor(dialect: Dialect, model: string) {
    this.#dialect = dialect;
    this.#model = model;
  }

  /** Texts of the answer so far, for a cost estimate. */
  get partial(): readonly string[] {
    const calls = [...this.#toolUses.values()];
    const own = this.#otherContent === '' ? [] : [this.#otherContent];
    return [this.#text, ...own, ...calls.flatMap((call) => [call.tool, call.argumentsJson])];
  }

  /** Usage reported by the provider. */
  get usage(): TokenUsage | undefined {
    return this.#usage;
  }

  /**
   * Prompt usage that the provider has reported so far, without output tokens; available before the usage is complete.
   */
  get promptUsage(): TokenUsage | undefined {
    const usage = this.#dialect.readUsage({ ...this.#reported, output_tokens: 0 });
    return usage && { ...NO_USAGE, ...usage, output: 0n, reasoning: 0n };
  }

  /**
   * Response id and finish reason as the provider reported them. Values that do not have the form of an id are omitted,
   * because they may contain content.
   */
  get terms(): ProviderTerms {
    const [responseId, finishReason] = [termOf(this.#responseId), termOf(this.#finishReason)];
    return {
      ...omitUndefined({ responseId, finishReason }),
    };
  }

  /** The ids to which later requests can refer. */
  get issuedIds(): IssuedIds | undefined {
    const { responseId } = this.terms;
    if (this.#dialect.issuesIds !== true || responseId === undefined) return undefined;
    return { responseId, itemIds: [...this.#itemIds] };
  }

  /** Whether a part of an answer was received. */
  get hasAnswer(): boolean {
    return this.#hasAnswer;
  }

  /** Whether a finish reason was received. */
  get isFinished(): boolean {
    return this.#finishReason !== undefined;
  }

  /** Adds a part; returns all content that it adds to the answer. */
  add(part: AnswerPart): string {
    const { text = '', otherContent = '', toolUses = [], responseId, model } = part;
    if (part.isAnswer === true) this.#hasAnswer = true;
    if (typeof responseId === 'string' && responseId !== '') this.#responseId = responseId;
    if (typeof model === 'string' && model !== '') this.#model = model;
    if (part.usage !== undefined && part.usage !== null) this.#addUsage(part.usage);
    if (part.finishReason !== undefined) {
      this.#finishReason = part.finishReason;
      this.#endReason = part.endReason;
    }
    for (const id of part.itemIds ?? []) {
      if (TERM.test(id) && this.#itemIds.size < MAX_ITEMS) this.#itemIds.add(id);
    }
    this.#text += text;
    this.#otherContent += otherContent;
    for (const block of part.blocks ?? []) this.#blocks.add(block);
    return text + otherContent + toolUses.map((use) => this.#addToolUse(use)).join('');
  }

  /** Ends an answer that exceeded the requested limit; returns the events that end its stream. */
  cut(last: object): readonly object[] {
    this.#finishReason = 'length';
    this.#endReason = 'max_tokens';
    this.#isCut = true;
    const { terms } = this;
    const about = { responseId: terms.responseId ?? '', model: this.#model };
    return this.#dialect.cut({ last: fieldsOf(last), ...about });
  }

  /** Returns the answer with its warnings (EM-9). */
  build(): { readonly answer: ChatAnswer; readonly warnings: readonly string[] } {
    const warnings: string[] = [];
    if (this.#isCut) {
      warnings.push('The provider sent more than the requested output; the answer was cut.');
    }
    // Some servers omit the ids that tool results reference.
    const toolUses = [...this.#toolUses]
      .toSorted(([a], [b]) => a - b)
      .map(([, use], index) => ({ ...use, id: use.id === '' ? `call_${index + 1}` : use.id }));
    let endReason = this.#endReason;
    if (endReason === undefined) {
      endReason = toolUses.length > 0 ? 'tool_use' : 'end_turn';
      warnings.push(
        this.#finishReason === undefined
          ? 'The answer ended without a finish reason.'
          : 'The provider sent an unknown finish reason.',
      );
    }
    // Servers differ in the finish reason of an answer with tool calls.
    if (endReason === 'end_turn' && toolUses.length > 0) endReason = 'tool_use';
    if (this.#usage === undefined) {
      warnings.push(
        this.#hasInvalidUsage
          ? 'The provider reported invalid or incomplete usage; usage is estimated.'
          : 'The provider reported no usage; usage is estimated.',
      );
    }
    const { responseId } = this.terms;
    const blocks = this.#blocks.build([...this.#toolUses.keys()]);
    const answer = {
      text: this.#text,
      toolUses,
      ...omitUndefined({ blocks }),
      endReason,
      providerModel: this.#model,
      ...omitUndefined({ responseId }),
    };
    return { answer, warnings };
  }

  /** Merges reported usage; a provider may report prompt and output tokens in different events. */
  #addUsage(usage: unknown): void {
    this.#reported = { ...this.#reported, ...fieldsOf(usage) };
    const read = typeof usage === 'object' ? this.#dialect.readUsage(this.#reported) : undefined;
    if (read === undefined) this.#hasInvalidUsage = true;
    else this.#usage = read;
  }

  /** Returns the content that the part adds. */
  #addToolUse({ index = this.#toolUses.size, id, tool, argumentsJson }: ToolUsePart): string {
    if (index < 0 || index > MAX_TOOL_USES) return '';
    const use = this.#toolUses.get(index) ?? { id: '', tool: '', argumentsJson: '' };
    this.#toolUses.set(index, {
      id: id === '' ? use.id : id,
      tool: use.tool + tool,
      argumentsJson: use.argumentsJson + argumentsJson,
    });
    return tool + argumentsJson;
  }
}

/** An id or a finish reason of a provider. */
const TERM = /^[\w.:-]{1,128}$/;

function termOf(value: string | undefined): string | undefined {
  return value !== undefined && TERM.test(value) ? value : undefined;
}

/** Maximum number of item ids of one answer. */
const MAX_ITEMS = 1_024;

/** Maximum index of a tool call, so that invalid indexes cannot exhaust memory. */
const MAX_TOOL_USES = 1_023;
