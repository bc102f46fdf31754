import type { AnswerBlock, ThinkingBlock } from '../../domain/chat/chat.ts';
import type { BlockPart } from '../../domain/dialects/dialect.ts';

/**
 * Limits of one answer: `MAX_BLOCKS` is the maximum number of its blocks, `MAX_THINKING` the maximum number of
 * characters of its thinking. The blocks, including the thinking, are stored with the call.
 */
const MAX_BLOCKS = 1_024;
const MAX_THINKING = 262_144;

/** Assembles the blocks of an answer with thinking, which later requests repeat in order and unchanged (AP-2). */
export class AnswerBlocks {
  readonly #texts = new Map<number, string>();
  readonly #thinking = new Map<number, ThinkingBlock>();
  #size = 0;
  #isTooLarge = false;

  add({ index, text = '', thinking }: BlockPart): void {
    const isKnown = this.#texts.has(index) || this.#thinking.has(index);
    if (!isKnown && this.#texts.size + this.#thinking.size >= MAX_BLOCKS) this.#isTooLarge = true;
    if (this.#isTooLarge) return;
    if (thinking === undefined) {
      this.#texts.set(index, (this.#texts.get(index) ?? '') + text);
      return;
    }
    const known = this.#thinking.get(index) ?? {};
    const added = Object.entries(thinking).map(([name, value]) => {
      this.#size += value.length;
      return [name, (known[name] ?? '') + value] as const;
    });
    this.#thinking.set(index, { ...known, ...Object.fromEntries(added) });
    this.#isTooLarge = this.#size > MAX_THINKING;
  }

  /**
   * Returns the blocks in order; undefined when the answer has no thinking or exceeds a limit.
   * @param calls positions of the tool calls
   */
  build(calls: readonly number[]): readonly AnswerBlock[] | undefined {
    if (this.#thinking.size === 0 || this.#isTooLarge) return undefined;
    const entries: (readonly [number, AnswerBlock])[] = [
      ...calls.map((index) => [index, { isCall: true }] as const),
      ...[...this.#texts].flatMap(([index, text]) =>
        text === '' ? [] : [[index, { text }] as const],
      ),
      ...[...this.#thinking].map(([index, thinking]) => [index, { thinking }] as const),
    ];
    return entries.toSorted(([a], [b]) => a - b).map(([, block]) => block);
  }
}
