/**
 * Limits on the messages and tools that an MCP server may send (BD-1). A server that exceeds `messages`, `tools` or
 * `toolBytes`, or sends too large an event, is disabled for `disabledMs`; other servers are not affected. Over HTTP, a
 * response that is too large fails only its request; over stdio, a message that is too large closes the connection.
 */
export const MCP_LIMITS = {
  /** Bytes of one message, of the response to one request, and of one event of a notification stream. */
  messageBytes: 4 * 1024 * 1024,
  /**
   * Notifications and requests in `windowMs`; events of notification streams are counted separately against the same
   * limit.
   */
  messages: 500,
  windowMs: 10_000,
  /** Tools of one server. */
  tools: 500,
  /** Bytes of the names, descriptions and schemas of all its tools. */
  toolBytes: 1024 * 1024,
  /** Pages of a list of tools. */
  pages: 16,
  /** Pause between two listings that notifications or reconnects cause. */
  listIntervalMs: 2_000,
  disabledMs: 600_000,
} as const;

/**
 * The error when a server exceeds a limit of {@link MCP_LIMITS}. The message is a predicate without a subject, such as
 * "sent more than 500 events in 10 seconds".
 */
export class McpLimitError extends Error {
  override readonly name = 'McpLimitError';
}

/**
 * Checks the list of tools that a server offers.
 * @throws McpLimitError
 */
export function assertToolsWithinLimits(tools: readonly object[]): void {
  const { tools: most, toolBytes } = MCP_LIMITS;
  if (tools.length > most) {
    throw new McpLimitError(`offers ${tools.length} tools; the limit is ${most}`);
  }
  const bytes = Buffer.byteLength(JSON.stringify(tools));
  if (bytes > toolBytes) {
    throw new McpLimitError(`describes its tools in ${bytes} bytes; the limit is ${toolBytes}`);
  }
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
 * Limits the response to one request to {@link MCP_LIMITS}.messageBytes. A response that is larger fails its own call.
 */
export function limitResponse(response: Response): Response {
  let size = 0;
  return limited(response, (chunk) => {
    size += chunk.byteLength;
    return size > MCP_LIMITS.messageBytes ? tooLarge('a response') : undefined;
  });
}

/**
 * Limits the size and the rate of the events of a notification stream. Reading stops at the first event above a limit,
 * because parsing a flood of events takes far longer than receiving it. An event ends with an empty line.
 * @param rate shared by the streams of one server, which may reconnect
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function limitEvents(
  response: Response,
  rate: MessageRate,
  onExceeded: (error: McpLimitError) => void,
): Response {
  let size = 0;
  let isLineEmpty = false;
  return limited(response, (chunk) => {
    size += chunk.byteLength;
    for (let index = 0; index < chunk.byteLength; index += 1) {
      const byte = chunk[index];
      if (byte === CARRIAGE_RETURN) continue;
      if (byte === LINE_FEED && isLineEmpty) {
        size = chunk.byteLength - index - 1;
        if (!rate.admits()) return exceeded(tooMany('events'));
      }
      isLineEmpty = byte === LINE_FEED;
    }
    return size > MCP_LIMITS.messageBytes ? exceeded(tooLarge('an event')) : undefined;
  });

  function exceeded(error: McpLimitError): McpLimitError {
    onExceeded(error);
    return error;
  }
}

/** The error of a server that sends more of `what` than {@link MCP_LIMITS}.messages. */
export function tooMany(what: 'events' | 'notifications'): McpLimitError {
  const { messages, windowMs } = MCP_LIMITS;
  return new McpLimitError(`sent more than ${messages} ${what} in ${windowMs / 1_000} seconds`);
}

function tooLarge(what: string): McpLimitError {
  return new McpLimitError(`sent ${what} of more than ${MCP_LIMITS.messageBytes} bytes`);
}

/** Returns the response with a body that fails at the first chunk for which `find` returns an error. */
function limited(
  response: Response,
  find: (chunk: Uint8Array) => McpLimitError | undefined,
): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      const error = find(chunk);
      if (error === undefined) controller.enqueue(chunk);
      else controller.error(error);
    },
  });
  return new Response(body.pipeThrough(limit), { status, statusText, headers });
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
