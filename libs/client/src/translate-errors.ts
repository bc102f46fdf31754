import type { Interceptor } from '@connectrpc/connect';
import { fromConnectError } from '@writ/rpc';

/** Turns what a call or its stream throws into the `WritError` that the service threw. */
export const translateErrors: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    return response.stream
      ? { ...response, message: translateStream(response.message) }
      : response;
  } catch (error) {
    throw fromConnectError(error);
  }
};

async function* translateStream<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw fromConnectError(error);
  }
}
