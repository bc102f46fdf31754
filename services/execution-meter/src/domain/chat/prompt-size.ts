import type { ChatPart, ChatRequest } from './chat.ts';

/** What a prompt consists of, for counting. */
export interface PromptSize {
  readonly texts: readonly string[];
  /** Messages, tools and the request itself: what templates wrap in tokens of their own. */
  readonly frames: number;
  readonly images: number;
}

/** More than any known template and image resolution uses. */
const AT_MOST = { frame: 16n, image: 2_500n };
/** What is usual. */
const USUALLY = { frame: 4n, image: 1_000n };

/** Takes a request apart for counting. */
export function promptSize({ messages, tools }: ChatRequest): PromptSize {
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
  };
}

/**
 * Tokens that no tokenizer exceeds: every token stands for at least one byte of UTF-8. Reservations
 * start from it, so that no prompt, however odd, settles above what it holds (EM-3).
 */
export function promptTokensAtMost(size: PromptSize): bigint {
  return bytesOf(size.texts) + around(size, AT_MOST);
}

/**
 * The same with the texts' tokens counted, and an eighth for models that count differently: for budgets
 * too small for the upper bound.
 */
export function promptTokensToHold(size: PromptSize, textTokens: bigint): bigint {
  const counted = textTokens + (textTokens + 7n) / 8n + around(size, AT_MOST);
  const atMost = promptTokensAtMost(size);
  if (counted < atMost) return counted;
  return atMost;
}

/** The same as an estimate of what was used, when no provider says it (EM-8). */
export function promptTokensUsually(size: PromptSize, textTokens: bigint): bigint {
  return textTokens + around(size, USUALLY);
}

/** The bytes of texts as UTF-8. */
export function bytesOf(texts: readonly string[]): bigint {
  return BigInt(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0));
}

function around({ frames, images }: PromptSize, each: typeof USUALLY): bigint {
  return BigInt(frames) * each.frame + BigInt(images) * each.image;
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
      return [];
  }
}
