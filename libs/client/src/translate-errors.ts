import type { DescMessage } from '@bufbuild/protobuf';
import type { StreamResponse, Transport } from '@connectrpc/connect';
import { fromConnectError } from '@writ/rpc';

/** Wraps a transport so that calls and streams fail with the `WritError` of the service (SYS-3). */
export function translateErrors(transport: Transport): Transport {
  return {
    unary: (...call) => transport.unary(...call).catch(rethrow),
    stream: async (...call) => translated(await transport.stream(...call).catch(rethrow)),
  };
}

function translated<I extends DescMessage, O extends DescMessage>(
  response: StreamResponse<I, O>,
): StreamResponse<I, O> {
  return { ...response, message: untilError(response.message) };
}

async function* untilError<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    rethrow(error);
  }
}

function rethrow(error: unknown): never {
  throw fromConnectError(error);
}
