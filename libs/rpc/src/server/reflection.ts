import { create, type DescService, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { file_google_rpc_error_details } from '@writ/contracts/google/rpc/error_details_pb';
import { file_google_rpc_status } from '@writ/contracts/google/rpc/status_pb';
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from '@writ/contracts/grpc/reflection/v1/reflection_pb';
import { ServerReflection as ServerReflectionV1Alpha } from '@writ/contracts/grpc/reflection/v1alpha/reflection_pb';
import { open, type ServedService } from '../calls/served-service.ts';
import { statusCode } from '../errors/status-code.ts';
import { DescriptorIndex } from './descriptor-index.ts';

/** The two versions of the reflection service, which use the same messages. */
const SERVICES: readonly DescService[] = [ServerReflection, ServerReflectionV1Alpha];

type ResponseInit = NonNullable<
  MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse']
>;

/**
 * Returns the reflection services (v1 and v1alpha) for `services`, so that tools can call them without
 * their protos (SYS-2). They also describe the types of error details.
 */
export function reflectionServices(services: readonly ServedService[]): ServedService[] {
  const described = [...services.map(({ service }) => service), ...SERVICES];
  const further = [file_google_rpc_status, file_google_rpc_error_details];
  let built: DescriptorIndex | undefined;
  // Built at the first request: few servers receive reflection requests, and the index has thousands of entries.
  const index = () => (built ??= new DescriptorIndex(described, further));
  return SERVICES.flatMap((service) => service.methods).map((method) => {
    async function* handle(requests: AsyncIterable<Message>): AsyncIterable<Message> {
      for await (const request of requests) {
        yield create(method.output, {
          originalRequest: request,
          messageResponse: respond(index(), request as ServerReflectionRequest),
        });
      }
    }
    return open(method.parent, [{ kind: 'bidi_streaming', method, handle }]);
  });
}

function respond(
  index: DescriptorIndex,
  { messageRequest }: ServerReflectionRequest,
): ResponseInit {
  switch (messageRequest.case) {
    case 'listServices':
      return {
        case: 'listServicesResponse',
        value: { service: index.services.map((name) => ({ name })) },
      };
    case 'fileByFilename':
      return files(index.byFileName(messageRequest.value), messageRequest.value);
    case 'fileContainingSymbol':
      return files(index.bySymbol(messageRequest.value), messageRequest.value);
    case 'fileContainingExtension': {
      const { containingType, extensionNumber } = messageRequest.value;
      const found = index.byExtension(containingType, extensionNumber);
      return files(found, `extension ${extensionNumber} of ${containingType}`);
    }
    case 'allExtensionNumbersOfType': {
      const baseTypeName = messageRequest.value;
      const extensionNumber = index.extensionNumbers(baseTypeName);
      if (extensionNumber === undefined) return notFound(baseTypeName);
      return {
        case: 'allExtensionNumbersResponse',
        value: { baseTypeName, extensionNumber },
      };
    }
    case undefined:
      return failure('invalid_argument', 'message_request: is required.');
  }
}

function files(found: Uint8Array[] | undefined, what: string): ResponseInit {
  if (found === undefined) return notFound(what);
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto: found } };
}

function notFound(what: string): ResponseInit {
  return failure('not_found', `${what} does not exist on this server.`);
}

function failure(kind: 'not_found' | 'invalid_argument', errorMessage: string): ResponseInit {
  return { case: 'errorResponse', value: { errorCode: statusCode(kind), errorMessage } };
}
