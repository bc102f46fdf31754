import { create, type DescService, type Message } from '@bufbuild/protobuf';
import { file_google_rpc_error_details } from '@writ/contracts/google/rpc/error_details_pb';
import { file_google_rpc_status } from '@writ/contracts/google/rpc/status_pb';
import { DescriptorIndex } from './descriptor-index.ts';
import {
  type ReflectionAnswer,
  type ReflectionPackage,
  type ReflectionRequest,
  reflectionMethod,
} from './reflection-contract.ts';
import { open, type ServedService } from './served-service.ts';
import { statusCode } from './status-code.ts';

const PACKAGES: readonly ReflectionPackage[] = ['grpc.reflection.v1', 'grpc.reflection.v1alpha'];

/**
 * Returns the reflection services (v1 and v1alpha) for `services`, so that tools can call them without
 * their protos (SYS-2). They also describe the types of error details.
 */
export function reflectionServices(services: readonly ServedService[]): ServedService[] {
  const methods = PACKAGES.map(reflectionMethod);
  const described: DescService[] = [
    ...services.map(({ service }) => service),
    ...methods.map(({ parent }) => parent),
  ];
  const index = new DescriptorIndex(described, [
    file_google_rpc_status,
    file_google_rpc_error_details,
  ]);
  return methods.map((method) => {
    async function* handle(requests: AsyncIterable<Message>): AsyncIterable<Message> {
      for await (const request of requests) {
        yield create(method.output, {
          originalRequest: request,
          messageResponse: respond(index, request as ReflectionRequest),
        });
      }
    }
    return open(method.parent, [{ kind: 'bidi_streaming', method, handle }]);
  });
}

function respond(index: DescriptorIndex, { messageRequest }: ReflectionRequest): ReflectionAnswer {
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

function files(found: Uint8Array[] | undefined, what: string): ReflectionAnswer {
  if (found === undefined) return notFound(what);
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto: found } };
}

function notFound(what: string): ReflectionAnswer {
  return failure('not_found', `${what} does not exist on this server.`);
}

function failure(kind: 'not_found' | 'invalid_argument', errorMessage: string): ReflectionAnswer {
  return { case: 'errorResponse', value: { errorCode: statusCode(kind), errorMessage } };
}
