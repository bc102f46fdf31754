import { ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js';
import { OverloadedError } from '@writ/kernel';
import { errorOf } from './error-details.ts';
import { hasDetails, toGrpcStatus } from './errors.ts';

type Sent = Parameters<ServerInterceptingCall['sendStatus']>[0];

/**
 * Gives details to the statuses that grpc-js makes by itself, such as that of a message over the
 * limit, so that every error carries ErrorInfo (SYS-3). It sends them from within the call, past
 * any responder of an interceptor, hence the call's own function is replaced.
 */
export const explainOwnErrors: ServerInterceptor = (_method, call) => {
  const send = call.sendStatus.bind(call);
  call.sendStatus = (sent) => send(explained(sent));
  return new ServerInterceptingCall(call);
};

function explained(sent: Sent): Sent {
  const { code, details } = sent;
  if (code === status.OK || code === null || code === undefined || hasDetails(sent.metadata)) {
    return sent;
  }
  const message = details ?? '';
  return toGrpcStatus(
    code === status.RESOURCE_EXHAUSTED
      ? new OverloadedError('MESSAGE_TOO_LARGE', message)
      : errorOf({ code, message }),
  );
}
