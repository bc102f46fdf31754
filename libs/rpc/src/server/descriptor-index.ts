import {
  type DescEnum,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type DescService,
  toBinary,
} from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';

/** Looks up file descriptors with their imports, for reflection. */
export class DescriptorIndex {
  /** Full names of the services, sorted. */
  readonly services: readonly string[];
  readonly #files = new Map<string, DescFile>();
  readonly #symbols = new Map<string, DescFile>();
  readonly #extensions = new Map<string, Map<number, DescFile>>();

  constructor(services: readonly DescService[], further: readonly DescFile[] = []) {
    this.services = services.map(({ typeName }) => typeName).sort();
    for (const { file } of services) this.#addFile(file);
    for (const file of further) this.#addFile(file);
  }

  /** The file of that name, such as `writ/run/v1/run.proto`, followed by its imports. */
  byFileName(name: string): Uint8Array[] | undefined {
    return encoded(this.#files.get(name));
  }

  /** The file that defines a message, enum, value, field, extension, service or method. */
  bySymbol(fullName: string): Uint8Array[] | undefined {
    return encoded(this.#symbols.get(fullName));
  }

  /** The file that extends message `typeName` under `number`. */
  byExtension(typeName: string, number: number): Uint8Array[] | undefined {
    return encoded(this.#extensions.get(typeName)?.get(number));
  }

  /** The extension numbers of message `typeName`; undefined for an unknown message. */
  extensionNumbers(typeName: string): number[] | undefined {
    const extensions = this.#extensions.get(typeName);
    if (extensions !== undefined) return [...extensions.keys()];
    return this.#symbols.has(typeName) ? [] : undefined;
  }

  #addFile(file: DescFile): void {
    if (this.#files.has(nameOf(file))) return;
    this.#files.set(nameOf(file), file);
    for (const dependency of file.dependencies) this.#addFile(dependency);
    for (const message of file.messages) this.#addMessage(message);
    for (const each of file.enums) this.#addEnum(each);
    for (const extension of file.extensions) this.#addExtension(extension, file);
    for (const service of file.services) {
      this.#symbols.set(service.typeName, file);
      for (const { name } of service.methods)
        this.#symbols.set(`${service.typeName}.${name}`, file);
    }
  }

  #addMessage(message: DescMessage): void {
    const { file, typeName } = message;
    this.#symbols.set(typeName, file);
    for (const { name } of [...message.fields, ...message.oneofs]) {
      this.#symbols.set(`${typeName}.${name}`, file);
    }
    for (const nested of message.nestedMessages) this.#addMessage(nested);
    for (const nested of message.nestedEnums) this.#addEnum(nested);
    for (const extension of message.nestedExtensions) this.#addExtension(extension, file);
  }

  /**
   * Adds an enum and its values. As in Protobuf, the full name of a value is a sibling of the enum, not a child of it.
   */
  #addEnum({ typeName, name, values, file }: DescEnum): void {
    this.#symbols.set(typeName, file);
    const scope = typeName.slice(0, typeName.length - name.length);
    for (const value of values) this.#symbols.set(scope + value.name, file);
  }

  #addExtension(extension: DescExtension, file: DescFile): void {
    this.#symbols.set(extension.typeName, file);
    const { typeName } = extension.extendee;
    const numbers = this.#extensions.get(typeName) ?? new Map<number, DescFile>();
    this.#extensions.set(typeName, numbers.set(extension.number, file));
  }
}

function nameOf(file: DescFile): string {
  return file.proto.name;
}

function encoded(file: DescFile | undefined): Uint8Array[] | undefined {
  return file === undefined
    ? undefined
    : [...withImports(file)].map((proto) => toBinary(FileDescriptorProtoSchema, proto));
}

/** Returns a file followed by its imports; clients expect the requested file first. */
function withImports(file: DescFile, found = new Set<FileDescriptorProto>()) {
  found.add(file.proto);
  for (const dependency of file.dependencies) {
    if (!found.has(dependency.proto)) withImports(dependency, found);
  }
  return found;
}
