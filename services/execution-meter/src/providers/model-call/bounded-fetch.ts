import { fetchLongCall } from '@writ/service';

/** Maximum size of one provider response, in bytes after decompression (BD-1). */
export const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;

/** Error for a provider response that exceeds a size limit (BD-1). */
export class ResponseTooLargeError extends Error {
  override readonly name = 'ResponseTooLargeError';
}

/**
 * `fetch` for providers. Does not follow redirects, because a redirect can lead to an address that is not in the
 * catalog. Waits up to an hour for the response, so the caller must enforce the timeout. `text` and `json` read at most
 * {@link MAX_RESPONSE_BYTES}; a stream is read with {@link BodyReader}.
 */
export async function boundedFetch(
  url: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const response = await fetchLongCall(url, { ...init, redirect: 'manual' });
  const text = async () => await textOf(new BodyReader(response));
  return Object.defineProperties(response, {
    text: { value: text },
    json: { value: async () => JSON.parse(await text()) as unknown },
  });
}

async function textOf(body: BodyReader): Promise<string> {
  const parts: Uint8Array[] = [];
  for (let part = await body.read(); part !== undefined; part = await body.read()) parts.push(part);
  return new TextDecoder().decode(Buffer.concat(parts));
}

/** Maximum time to receive the rest of a discarded body, in milliseconds; the connection is then closed. */
const DRAIN_MS = 1_000;

/** Reads at most {@link MAX_RESPONSE_BYTES} of a body, without reading ahead. */
export class BodyReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #bytes = 0;

  constructor({ body }: Response) {
    this.#reader = body?.getReader();
  }

  /**
   * Returns the next chunk; undefined at the end.
   * @throws ResponseTooLargeError, after which the connection is closed
   */
  async read(): Promise<Uint8Array | undefined> {
    const { value } = (await this.#reader?.read()) ?? {};
    if (value === undefined) return undefined;
    this.#bytes += value.byteLength;
    if (this.#bytes <= MAX_RESPONSE_BYTES) return value;
    this.close();
    throw new ResponseTooLargeError(
      `The response of the provider is larger than ${MAX_RESPONSE_BYTES} bytes.`,
    );
  }

  /** Closes the connection, if the body has not ended. */
  close(): void {
    void this.#reader?.cancel().catch(() => undefined);
  }

  /** Reads and discards the rest of the body in the background, so that the next request can reuse the connection. */
  drain(): void {
    const late = setTimeout(() => this.close(), DRAIN_MS).unref();
    const discard = async (): Promise<void> => {
      while ((await this.read()) !== undefined);
    };
    void discard()
      .catch(() => undefined)
      .finally(() => clearTimeout(late));
  }
}
