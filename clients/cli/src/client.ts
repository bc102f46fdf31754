import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createWritClient, type WritClient } from '@writ/client';
import { DEV_API_KEY_FILE } from '@writ/identity/names';
import { InvalidRequestError, omitUndefined } from '@writ/kernel';
import type { ClientOptions } from './client-options.ts';
import type { CliIo } from './io.ts';

const LOCAL = '127.0.0.1:8080';
/** Time for which a watch reconnects while the platform restarts, ms. */
const RECONNECT_MS = 60_000;
/** File in the data folder with the address of the platform that `writ dev` runs. */
export const DEV_ADDRESS_FILE = 'dev-address';

/**
 * Opens a client of the public API.
 * @throws InvalidRequestError API_KEY_MISSING, CLEARTEXT_ADDRESS for a CA file with a cleartext address,
 * INVALID_ADDRESS, INVALID_FILE, INVALID_TLS_FILE
 */
export function openClient(options: ClientOptions, { env }: Pick<CliIo, 'env'>): WritClient {
  const baseUrl = addressOf(options, { env });
  const apiKey = apiKeyOf(options, env, new URL(baseUrl).hostname);
  const ca = authoritiesOf(options, { env });
  return createWritClient({
    baseUrl,
    apiKey,
    reconnectMs: RECONNECT_MS,
    ...omitUndefined({ ca }),
  });
}

/**
 * Returns the CA certificates of --ca-file or WRIT_CA_FILE, in PEM; undefined if neither is set.
 * @throws InvalidRequestError CLEARTEXT_ADDRESS, INVALID_ADDRESS, INVALID_TLS_FILE
 */
export function authoritiesOf(
  options: ClientOptions,
  { env }: Pick<CliIo, 'env'>,
): string | undefined {
  if (caFileOf(options, env) === '') return undefined;
  const baseUrl = addressOf(options, { env });
  if (baseUrl.startsWith('https:')) return readAuthorities(options, { env });
  throw new InvalidRequestError(
    'CLEARTEXT_ADDRESS',
    `${baseUrl} is a cleartext address. Use https, or remove --ca-file and WRIT_CA_FILE.`,
  );
}

/**
 * The base URL that a command calls: --address, WRIT_ADDRESS, the platform that `writ dev` runs on this data folder, or
 * 127.0.0.1:8080.
 * @throws InvalidRequestError INVALID_ADDRESS
 */
export function addressOf(options: ClientOptions, { env }: Pick<CliIo, 'env'>): string {
  const isTls = caFileOf(options, env) !== '';
  return baseUrlOf(options.address ?? (env.WRIT_ADDRESS || devAddress(env)), isTls);
}

function devAddress(env: CliIo['env']): string {
  const file = resolve(env.WRIT_DATA || '.writ', DEV_ADDRESS_FILE);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
}

/**
 * Returns the base URL of an address. An address without a scheme uses http if it is an address of this machine and no
 * CA file is set. Otherwise it uses https, so that the API key is not sent over a network in cleartext.
 */
function baseUrlOf(address: string, isTls: boolean): string {
  const given = address === '' ? LOCAL : address;
  const hasScheme = /^[a-z]+:\/\//i.test(given);
  const url = URL.parse(hasScheme ? given : `http://${given}`);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new InvalidRequestError(
      'INVALID_ADDRESS',
      `--address or WRIT_ADDRESS must be host:port, or a URL that begins with http:// or https://, not ${JSON.stringify(given)}.`,
      { field: 'address' },
    );
  if (!hasScheme && (isTls || !isThisMachine(url.hostname))) url.protocol = 'https:';
  return url.href.replace(/\/$/, '');
}

/** The key of --api-key-file or WRIT_API_KEY, or, for an address of this machine, the development key. */
function apiKeyOf({ apiKeyFile }: ClientOptions, env: CliIo['env'], hostname: string): string {
  if (apiKeyFile !== undefined) return readKey(apiKeyFile);
  const key = env.WRIT_API_KEY ?? '';
  if (key !== '') return key;
  const development = resolve(env.WRIT_DATA || '.writ', DEV_API_KEY_FILE);
  if (isThisMachine(hostname) && existsSync(development)) return readKey(development);
  throw new InvalidRequestError(
    'API_KEY_MISSING',
    'WRIT_API_KEY is not set. Set it to an API key of the platform, or name a file with --api-key-file.',
  );
}

function readKey(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (cause) {
    throw new InvalidRequestError(
      'INVALID_FILE',
      `${file} cannot be read (${codeOf(cause)}).`,
      { field: 'api-key-file' },
      { cause },
    );
  }
}

function isThisMachine(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** Returns the code of an error of Node, such as ENOENT; `unknown` for other errors. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

function caFileOf({ caFile }: ClientOptions, env: CliIo['env']): string {
  return caFile ?? env.WRIT_CA_FILE ?? '';
}

/**
 * Like `authoritiesOf`, for a server other than the edge: the address of the edge may be cleartext.
 * @throws InvalidRequestError INVALID_TLS_FILE
 */
export function readAuthorities(
  options: ClientOptions,
  { env }: Pick<CliIo, 'env'>,
): string | undefined {
  const file = caFileOf(options, env);
  if (file === '') return undefined;
  const fault = (why: string, cause?: unknown) =>
    new InvalidRequestError('INVALID_TLS_FILE', `${file} ${why}.`, { field: 'ca-file' }, { cause });
  try {
    const pem = readFileSync(file, 'utf8');
    if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  } catch (cause) {
    throw fault(`cannot be read (${codeOf(cause)})`, cause);
  }
  throw fault('contains no certificate in PEM');
}
