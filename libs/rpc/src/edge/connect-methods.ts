import type {
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  Message,
} from '@bufbuild/protobuf';
import {
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  type HandlerContext,
} from '@connectrpc/connect';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import { compressionGzip } from '@connectrpc/connect-node';
import { InternalError } from '@writ/kernel';
import type { Calls } from '../calls/calls.ts';
import type { ServedMethod, ServedService } from '../calls/served-service.ts';
import { MAX_TIMER_MS } from '../limits.ts';
import { ConnectCall } from './connect-call.ts';

const callKey = createContextKey<ConnectCall | undefined>(undefined);

/** Returns the HTTP handlers of `services` by path; each serves gRPC, gRPC-Web and Connect (SYS-2). */
export function connectHandlers(
  calls: Calls,
  services: readonly ServedService[],
  maxMessageBytes: number,
): ReadonlyMap<string, UniversalHandler> {
  const methods = services.flatMap((service) => service.methods);
  const byMethod = new Map(methods.map((served) => [served.implementation.method, served]));
  const router = createConnectRouter({
    readMaxBytes: maxMessageBytes,
    maxTimeoutMs: MAX_TIMER_MS,
    // Brotli at its default quality costs more time than it saves on most networks.
    acceptCompression: [compressionGzip],
    // A misspelled budget field must not result in an unlimited budget.
    jsonOptions: { ignoreUnknownFields: false },
    requestGate: async (context) => {
      const served = byMethod.get(context.method);
      if (served === undefined) throw new InternalError('INTERNAL', 'The method has no handler.');
      const call = new ConnectCall(calls, served, context, maxMessageBytes);
      context.values.set(callKey, call);
      await call.admit();
    },
  });
  for (const served of methods) register(router, served);
  return new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
}

function register(router: ConnectRouter, { implementation }: ServedMethod): void {
  const { method } = implementation;
  switch (implementation.kind) {
    case 'unary':
      router.rpc(method as DescMethodUnary, (request, context) =>
        callOf(context).handleUnary(request),
      );
      return;
    case 'server_streaming':
      router.rpc(method as DescMethodServerStreaming, (request, context) =>
        callOf(context).handleStream(request),
      );
      return;
    case 'bidi_streaming':
      router.rpc(method as DescMethodBiDiStreaming, (requests: AsyncIterable<Message>, context) =>
        callOf(context).handleStream(requests),
      );
  }
}

function callOf(context: HandlerContext): ConnectCall {
  const call = context.values.get(callKey);
  if (call === undefined) throw new InternalError('INTERNAL', 'The call did not pass the gate.');
  return call;
}
