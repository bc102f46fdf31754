import type { DescMessage } from '@bufbuild/protobuf';
import type { StreamResponse, Transport } from '@connectrpc/connect';
import { fromConnectError } from '@writ/rpc';

/** A transport whose calls and streams fail with the `WritError` that the service threw (SYS-3). */
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
