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
 * address that the catalog does not name.
 */
export async function boundedFetch(
  url: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const response = await fetch(url, { ...init, redirect: 'manual' });
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true;
  const lines = isStream ? new LineLengths() : undefined;
  let bytes = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      bytes += chunk.byteLength;
      if (bytes > RESPONSE_LIMITS.bytes) {
        const message = `The response of the provider is larger than ${RESPONSE_LIMITS.bytes} bytes.`;
        controller.error(new ResponseTooLargeError(message));
      } else if (lines?.longestWith(chunk) === 'too_long') {
        const message = `A line of the response is longer than ${RESPONSE_LIMITS.lineBytes} bytes.`;
        controller.error(new ResponseTooLargeError(message));
      } else controller.enqueue(chunk);
    },
  });
  const limited = new Response(body.pipeThrough(limit), { status, statusText, headers });
  // The SDK names the URL in its errors.
  Object.defineProperty(limited, 'url', { value: response.url });
  return limited;
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
