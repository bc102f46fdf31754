/** What one response of a provider may be, after decompression (BD-1). */
export const RESPONSE_LIMITS = {
  bytes: 32 * 1024 * 1024,
  /** Bytes between two line ends of an event stream. */
  lineBytes: 1024 * 1024,
} as const;

/** A response exceeds {@link RESPONSE_LIMITS}. */
class ResponseTooLargeError extends Error {
  override readonly name = 'ResponseTooLargeError';
}

/**
 * `fetch` for providers. Limits the decompressed body, and does not follow redirects, which could lead to an
 * address that the catalog does not name. Read it by `body`, `text` or `json`; a whole answer is read without another stream, which would
 * take half as long as the request.
 */
export async function boundedFetch(
  url: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const response = await fetch(url, { ...init, redirect: 'manual' });
  const { body, headers } = response;
  if (body === null) return response;
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true;
  const limit = new BodyLimit(isStream);
  const limited = limit.stream(body);
  const text = async () => await textOf(body.locked ? limited : limit.chunksOf(body));
  return Object.defineProperties(response, {
    body: { value: limited },
    text: { value: text },
    json: { value: async () => JSON.parse(await text()) as unknown },
  });
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return new TextDecoder().decode(Buffer.concat(parts));
}

/** Checks the chunks of one body against {@link RESPONSE_LIMITS}. */
class BodyLimit {
  readonly #lines: LineLengths | undefined;
  #bytes = 0;

  constructor(isStream: boolean) {
    this.#lines = isStream ? new LineLengths() : undefined;
  }

  /** Returns the error of a body that is too large with one more chunk. */
  errorWith(chunk: Uint8Array): ResponseTooLargeError | undefined {
    this.#bytes += chunk.byteLength;
    const { bytes, lineBytes } = RESPONSE_LIMITS;
    if (this.#bytes > bytes) {
      return new ResponseTooLargeError(
        `The response of the provider is larger than ${bytes} bytes.`,
      );
    }
    if (this.#lines?.longestWith(chunk) !== 'too_long') return undefined;
    return new ResponseTooLargeError(`A line of the response is longer than ${lineBytes} bytes.`);
  }

  /** Reads the body only when it is read itself, and no chunk in advance. */
  stream(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    const source: UnderlyingDefaultSource<Uint8Array> = {
      pull: async (controller) => {
        reader ??= body.getReader();
        const { done, value } = await reader.read();
        if (done) return controller.close();
        const error = this.errorWith(value);
        if (error === undefined) return controller.enqueue(value);
        void reader.cancel(error).catch(() => undefined);
        throw error;
      },
      cancel: (reason) => (reader ?? body).cancel(reason),
    };
    return new ReadableStream(source, { highWaterMark: 0 });
  }

  /** Leaving the loop cancels the body. */
  async *chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of body) {
      const error = this.errorWith(chunk);
      if (error !== undefined) throw error;
      yield chunk;
    }
  }
}

const LINE_FEED = 0x0a;

/** Measures lines across chunks. */
class LineLengths {
  #length = 0;

  longestWith(chunk: Uint8Array): 'ok' | 'too_long' {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      if (this.#length + end - from > RESPONSE_LIMITS.lineBytes) return 'too_long';
      this.#length = 0;
      from = end + 1;
    }
    this.#length += chunk.byteLength - from;
    return this.#length > RESPONSE_LIMITS.lineBytes ? 'too_long' : 'ok';
  }
}
