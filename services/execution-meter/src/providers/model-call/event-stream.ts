import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { APIError } from 'openai';
import { BodyReader, ResponseTooLargeError } from './bounded-fetch.ts';

/** Maximum length of one line or one event of a stream, in characters (BD-1). */
export const MAX_EVENT_CHARS = 1024 * 1024;

/** Data of the event that ends a stream of OpenAI's API, before the connection is closed. */
const DONE = '[DONE]';

/**
 * Yields the JSON values of an event stream. Leaving the loop early closes the connection; after a complete stream, the
 * next request can reuse it.
 * @throws SyntaxError for an event that is not JSON; APIError for an error that the provider sends as an event;
 *   ResponseTooLargeError
 */
export async function* readEvents(response: Response): AsyncGenerator<unknown, void, undefined> {
  const body = new BodyReader(response);
  const received: EventSourceMessage[] = [];
  let isTooLarge = false;
  const parser = createParser({
    maxBufferSize: MAX_EVENT_CHARS,
    onEvent: (event) => received.push(event),
    onError: ({ type }) => {
      isTooLarge ||= type === 'max-buffer-size-exceeded';
    },
  });
  const decoder = new TextDecoder();
  let isComplete = false;
  try {
    for (let isOpen = true; isOpen; ) {
      const chunk = await body.read();
      isOpen = chunk !== undefined;
      // Some servers omit the empty line after the last event.
      parser.feed(isOpen ? decoder.decode(chunk, { stream: true }) : `${decoder.decode()}\n\n`);
      for (const event of received.splice(0)) {
        isComplete = event.data === DONE;
        if (isComplete) return;
        yield parse(event, response.headers);
      }
      if (isTooLarge) {
        const message = `An event of the stream is longer than ${MAX_EVENT_CHARS} characters.`;
        throw new ResponseTooLargeError(message);
      }
    }
    isComplete = true;
  } finally {
    if (isComplete) body.drain();
    else body.close();
  }
}

function parse({ event, data }: EventSourceMessage, headers: Headers): unknown {
  const value: unknown = JSON.parse(data);
  const { error } = (value ?? {}) as { readonly error?: unknown };
  if (event !== 'error' && !error) return value;
  throw new APIError(undefined, (error ?? value) as object, undefined, headers);
}
