import { ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js';
import { OverloadedError } from '@writ/kernel';
import { errorOf } from './error-details.ts';
import { hasDetails, toGrpcStatus } from './errors.ts';

type SentStatus = Parameters<ServerInterceptingCall['sendStatus']>[0];

/**
 * Adds details to the statuses that grpc-js creates itself, such as that of a message over the limit,
 * so that every error carries ErrorInfo (SYS-3). grpc-js bypasses the responder of an interceptor for
 * them, hence the function of the call is replaced.
 */
export const addErrorDetails: ServerInterceptor = (_method, call) => {
  const send = call.sendStatus.bind(call);
  call.sendStatus = (sent) => send(withDetails(sent));
  return new ServerInterceptingCall(call);
};

function withDetails(sent: SentStatus): SentStatus {
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
