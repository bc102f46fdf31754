/** What an MCP server may send (BD-1). A server that exceeds a limit is disabled alone, for `disabledMs`. */
export const MCP_LIMITS = {
  /** Bytes of one message, of the response to one request, and of one event of a notification stream. */
  messageBytes: 4 * 1024 * 1024,
  /** Notifications and requests in `windowMs`. */
  messages: 500,
  windowMs: 10_000,
  /** Tools of one server. */
  tools: 500,
  /** Bytes of the names, descriptions and schemas of all its tools. */
  toolBytes: 1024 * 1024,
  /** Pages of a list of tools. */
  pages: 16,
  /** Smallest interval between the starts of two listings. */
  listIntervalMs: 2_000,
  disabledMs: 600_000,
} as const;

/** A limit of {@link MCP_LIMITS} is exceeded. The message completes "The server …". */
export class McpLimitError extends Error {
  override readonly name = 'McpLimitError';
}

/** Counts the notifications and requests of a server in windows of {@link MCP_LIMITS}.windowMs. */
export class MessageRate {
  #since = Number.NEGATIVE_INFINITY;
  #count = 0;

  /** Counts one more message, and returns whether it is within the limit. */
  admits(): boolean {
    const now = performance.now();
    if (now - this.#since >= MCP_LIMITS.windowMs) {
      this.#since = now;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= MCP_LIMITS.messages;
  }
}

/**
 * Limits an HTTP response of a server: as a whole, or event by event when it is a notification stream, which has no
 * end. An event ends with an empty line.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function limitResponse(
  response: Response,
  unit: 'response' | 'event',
  onExceeded: (error: McpLimitError) => void = () => undefined,
): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  const { messageBytes } = MCP_LIMITS;
  let size = 0;
  let isLineEmpty = false;
  const measure = (chunk: Uint8Array): void => {
    size += chunk.byteLength;
    if (unit === 'response') return;
    for (const [index, byte] of chunk.entries()) {
      if (byte === CARRIAGE_RETURN) continue;
      if (byte === LINE_FEED && isLineEmpty) size = chunk.byteLength - index - 1;
      isLineEmpty = byte === LINE_FEED;
    }
  };
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      measure(chunk);
      if (size <= messageBytes) return controller.enqueue(chunk);
      const error = new McpLimitError(
        `sent ${unit === 'event' ? 'an event' : 'a response'} of more than ${messageBytes} bytes`,
      );
      controller.error(error);
      onExceeded(error);
    },
  });
  return new Response(body.pipeThrough(limit), { status, statusText, headers });
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
