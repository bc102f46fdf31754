import {
  Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
  status,
} from '@grpc/grpc-js';
import { resetStream } from '../grpc-js-internals.ts';

/**
 * Ends a call whose request is not complete in time: grpc-js calls the handler only when the request is complete, so
 * the time limit of the handler does not cover the time until then (BD-1). Streaming requests have no limit.
 */
export function requestTimeLimit(limitMs: number): ServerInterceptor {
  return (method, call) => {
    if (method.requestStream) return new ServerInterceptingCall(call);
    let timer: NodeJS.Timeout | undefined;
    const listener = new ServerListenerBuilder()
      .withOnReceiveHalfClose((next) => {
        clearTimeout(timer);
        next();
      })
      .withOnCancel(() => clearTimeout(timer))
      .build();
    const responder = new ResponderBuilder()
      .withStart((next) => {
        timer = setTimeout(() => {
          call.sendStatus({
            code: status.DEADLINE_EXCEEDED,
            details: `The request of ${method.path} was not complete within ${limitMs} ms.`,
            metadata: new Metadata(),
          });
          resetStream(call);
        }, limitMs);
        next(listener);
      })
      .withSendStatus((sent, next) => {
        clearTimeout(timer);
        next(sent);
      })
      .build();
    return new ServerInterceptingCall(call, responder);
  };
}
