import type { ChatPart, ChatRequest } from './chat.ts';

/** Parts of a prompt that determine its token count. */
export interface PromptSize {
  readonly texts: readonly string[];
  /**
   * Number of messages and tools plus one for the request; chat templates add tokens to each of them.
   */
  readonly frames: number;
  readonly images: number;
  readonly documents: number;
  /** Tokens that the provider adds. */
  readonly added: bigint;
}

/** Upper bounds of the tokens of a frame and of an image for most models; documents are not included. */
const UPPER_BOUND = { frame: 16n, image: 5_000n, document: 0n };
/**
 * Upper bounds for all providers: gpt-4o-mini counts up to 48,169 tokens for an image, and the number of pages of a
 * compressed document is limited only by the context window of the model.
 */
const POSSIBLE = { frame: 16n, image: 50_000n, document: 2_000_000n };
/** Typical numbers of tokens of a frame and of an image; documents are not included. */
const TYPICAL = { frame: 4n, image: 1_000n, document: 0n };

/** Returns the size of the prompt of a request. */
export function promptSize({ messages, tools, addedTokens = 0n }: ChatRequest): PromptSize {
  const parts = messages.flatMap((message) => message.parts);
  return {
    texts: [
      ...parts.flatMap(textsOf),
      ...tools.flatMap(({ name, description, inputSchema }) => [
        name,
        description,
        JSON.stringify(inputSchema),
      ]),
    ],
    frames: 1 + messages.length + tools.length,
    images: parts.filter(({ type }) => type === 'image').length,
    documents: parts.filter(({ type }) => type === 'document').length,
    added: addedTokens,
  };
}

/**
 * Returns the number of prompt tokens to reserve first. For text, this number is an upper bound for every tokenizer,
 * because a token represents at least one byte of UTF-8; a text prompt therefore never uses more tokens than this
 * number (EM-3). Images and documents can use more tokens.
 */
export function promptTokensAtMost(size: PromptSize): bigint {
  return bytesOf(size.texts) + tokensBesidesText(size, UPPER_BOUND);
}

/**
 * Returns the maximum number of prompt tokens that a provider can have used (EM-8). If the prompt contains images or
 * documents, these tokens can exceed the hold; the excess is booked as debt.
 */
export function promptTokensPossible(size: PromptSize): bigint {
  return bytesOf(size.texts) + tokensBesidesText(size, POSSIBLE);
}

/**
 * Returns the counted tokens plus one eighth for differences between tokenizers. Used when the upper bound does not fit
 * the budget.
 */
export function promptTokensToHold(size: PromptSize, textTokens: bigint): bigint {
  const counted = textTokens + (textTokens + 7n) / 8n + tokensBesidesText(size, UPPER_BOUND);
  const atMost = promptTokensAtMost(size);
  if (counted < atMost) return counted;
  return atMost;
}

/** Returns an estimate of the used tokens when the provider reports no usage (EM-8). */
export function promptTokensUsually(size: PromptSize, textTokens: bigint): bigint {
  return textTokens + tokensBesidesText(size, TYPICAL);
}

/** Returns the UTF-8 size of texts in bytes. */
export function bytesOf(texts: readonly string[]): bigint {
  return BigInt(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0));
}

function tokensBesidesText(size: PromptSize, each: typeof TYPICAL): bigint {
  const { frames, images, documents, added } = size;
  const media = BigInt(images) * each.image + BigInt(documents) * each.document;
  return added + BigInt(frames) * each.frame + media;
}

function textsOf(part: ChatPart): string[] {
  switch (part.type) {
    case 'text':
      return [part.text];
    case 'tool_use':
      return [part.id, part.tool, part.argumentsJson];
    case 'tool_result':
      return [part.id, part.content];
    case 'image':
    case 'document':
      return [];
  }
}
