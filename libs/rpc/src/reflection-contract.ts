import { create, createFileRegistry, type DescMethod, type Message } from '@bufbuild/protobuf';
import {
  FileDescriptorSetSchema,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt';

/** The versions of gRPC's reflection: the same messages in two packages. */
export type ReflectionPackage = 'grpc.reflection.v1' | 'grpc.reflection.v1alpha';

/** grpc.reflection.v1.ServerReflectionRequest. */
export interface ReflectionRequest extends Message {
  readonly messageRequest:
    | { readonly case: 'fileByFilename'; readonly value: string }
    | { readonly case: 'fileContainingSymbol'; readonly value: string }
    | {
        readonly case: 'fileContainingExtension';
        readonly value: { readonly containingType: string; readonly extensionNumber: number };
      }
    | { readonly case: 'allExtensionNumbersOfType'; readonly value: string }
    | { readonly case: 'listServices'; readonly value: string }
    | { readonly case: undefined };
}

/** What is answered to one request: the `message_response` of a ServerReflectionResponse. */
export type ReflectionAnswer =
  | {
      readonly case: 'fileDescriptorResponse';
      readonly value: { readonly fileDescriptorProto: Uint8Array[] };
    }
  | {
      readonly case: 'allExtensionNumbersResponse';
      readonly value: { readonly baseTypeName: string; readonly extensionNumber: number[] };
    }
  | {
      readonly case: 'listServicesResponse';
      readonly value: { readonly service: { readonly name: string }[] };
    }
  | {
      readonly case: 'errorResponse';
      readonly value: { readonly errorCode: number; readonly errorMessage: string };
    };

/**
 * The method `ServerReflectionInfo` of one version. No package carries its generated code, and the
 * contract is frozen, so it is described here, as data, once for both versions.
 */
export function reflectionMethod(packageName: ReflectionPackage): DescMethod {
  const registry = createFileRegistry(
    create(FileDescriptorSetSchema, { file: [file(packageName)] }),
  );
  const method = registry.getService(`${packageName}.ServerReflection`)?.methods[0];
  if (method === undefined) throw new TypeError(`${packageName} describes no method.`);
  return method;
}

function file(packageName: ReflectionPackage) {
  const typed = (typeName: string) => ({
    type: Type.MESSAGE,
    typeName: `.${packageName}.${typeName}`,
  });
  const text = { type: Type.STRING };
  const number = { type: Type.INT32 };
  const bytes = { type: Type.BYTES };
  const repeated = { label: Label.REPEATED };
  const inOneof = { oneofIndex: 0 };
  return {
    name: `${packageName.replaceAll('.', '/')}/reflection.proto`,
    package: packageName,
    syntax: 'proto3',
    messageType: [
      message(
        'ServerReflectionRequest',
        [
          field('host', 1, text),
          field('file_by_filename', 3, text, inOneof),
          field('file_containing_symbol', 4, text, inOneof),
          field('file_containing_extension', 5, typed('ExtensionRequest'), inOneof),
          field('all_extension_numbers_of_type', 6, text, inOneof),
          field('list_services', 7, text, inOneof),
        ],
        'message_request',
      ),
      message('ExtensionRequest', [
        field('containing_type', 1, text),
        field('extension_number', 2, number),
      ]),
      message(
        'ServerReflectionResponse',
        [
          field('valid_host', 1, text),
          field('original_request', 2, typed('ServerReflectionRequest')),
          field('file_descriptor_response', 4, typed('FileDescriptorResponse'), inOneof),
          field('all_extension_numbers_response', 5, typed('ExtensionNumberResponse'), inOneof),
          field('list_services_response', 6, typed('ListServiceResponse'), inOneof),
          field('error_response', 7, typed('ErrorResponse'), inOneof),
        ],
        'message_response',
      ),
      message('FileDescriptorResponse', [field('file_descriptor_proto', 1, bytes, repeated)]),
      message('ExtensionNumberResponse', [
        field('base_type_name', 1, text),
        field('extension_number', 2, number, repeated),
      ]),
      message('ListServiceResponse', [field('service', 1, typed('ServiceResponse'), repeated)]),
      message('ServiceResponse', [field('name', 1, text)]),
      message('ErrorResponse', [field('error_code', 1, number), field('error_message', 2, text)]),
    ],
    service: [
      {
        name: 'ServerReflection',
        method: [
          {
            name: 'ServerReflectionInfo',
            inputType: `.${packageName}.ServerReflectionRequest`,
            outputType: `.${packageName}.ServerReflectionResponse`,
            clientStreaming: true,
            serverStreaming: true,
          },
        ],
      },
    ],
  };
}

interface FieldType {
  readonly type: Type;
  readonly typeName?: string;
}

interface FieldOptions {
  readonly label?: Label;
  readonly oneofIndex?: number;
}

function field(name: string, number: number, type: FieldType, options: FieldOptions = {}) {
  return { name, number, label: Label.OPTIONAL, ...type, ...options };
}

function message(name: string, fields: ReturnType<typeof field>[], oneof?: string) {
  return { name, field: fields, oneofDecl: oneof === undefined ? [] : [{ name: oneof }] };
}
