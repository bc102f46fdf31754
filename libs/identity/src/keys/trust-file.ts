import { InvalidRequestError, isJsonObject, type JsonValue, UnavailableError } from '@writ/kernel';
import { isServiceName, type ServiceName } from '../services/names.ts';
import { badFile, readPrivate, replacePrivate } from './private-file.ts';
import type { Addresses } from './remote-trust.ts';

/** Name of the trust file in a data folder. */
export const TRUST_FILE = 'trust.json';

const ADDRESS_PATTERN = /^(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+):\d{1,5}$/;

/**
 * Reads a trust file: a JSON object from service name to `host:port` (embedded mode).
 * @throws UnavailableError TRUST_FILE_MISSING when the platform has not written it yet
 * @throws InvalidRequestError INVALID_FILE naming the file and the problem
 */
export function readTrustFile(file: string): Addresses {
  const text = readPrivate(file);
  if (text === undefined)
    throw new UnavailableError('TRUST_FILE_MISSING', `${file} does not exist yet.`, { file });
  let content: JsonValue;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw badFile(file, 'is not JSON; delete it and restart', error);
  }
  if (!isJsonObject(content)) throw badFile(file, 'is not a JSON object; delete it and restart');
  const addresses: Partial<Record<ServiceName, string>> = {};
  for (const [service, address] of Object.entries(content)) {
    if (!isServiceName(service)) throw badFile(file, `names ${service}, which is not a service`);
    if (!isAddress(address)) throw badFile(file, `has no host:port for ${service}`);
    addresses[service] = address;
  }
  return addresses;
}

/**
 * Writes a trust file atomically and durably.
 * @throws InvalidRequestError INVALID_ADDRESS naming the service
 */
export function writeTrustFile(file: string, addresses: Addresses): void {
  for (const [service, address] of Object.entries(addresses)) {
    if (isAddress(address)) continue;
    throw new InvalidRequestError(
      'INVALID_ADDRESS',
      `The address of ${service} is not host:port.`,
      {
        field: service,
      },
    );
  }
  replacePrivate(file, `${JSON.stringify(addresses, null, 2)}\n`);
}

function isAddress(value: unknown): value is string {
  return typeof value === 'string' && ADDRESS_PATTERN.test(value);
}
