import { readFileSync } from 'node:fs';
import { createWritClient, type WritClient } from '@writ/client';
import { InvalidRequestError } from '@writ/kernel';
import type { Command } from 'commander';
import type { CliIo } from './io.ts';

const LOCAL = '127.0.0.1:8080';

/** Options of every command that calls a platform. */
export interface ClientOptions {
  readonly address?: string;
  readonly caFile?: string;
}

/** Adds the options of {@link openClient}. */
export function withClientOptions(command: Command): Command {
  return command
    .option('--address <url>', 'URL of the public API (WRIT_ADDRESS, http://127.0.0.1:8080)')
    .option('--ca-file <file>', 'CA certificates of the server, in PEM (WRIT_CA_FILE)');
}

/**
 * A client of the public API.
 * @throws InvalidRequestError API_KEY_MISSING, CLEARTEXT_ADDRESS for a CA file with a cleartext address, INVALID_TLS_FILE
 */
export function openClient(options: ClientOptions, { env }: CliIo): WritClient {
  const apiKey = env.WRIT_API_KEY;
  if (apiKey === undefined || apiKey === '')
    throw new InvalidRequestError(
      'API_KEY_MISSING',
      'WRIT_API_KEY is not set. Set it to an API key of the platform.',
    );
  const caFile = options.caFile ?? env.WRIT_CA_FILE ?? '';
  const address = options.address ?? env.WRIT_ADDRESS;
  if (caFile === '') return createWritClient({ baseUrl: address ?? `http://${LOCAL}`, apiKey });
  const baseUrl = address ?? `https://${LOCAL}`;
  if (!baseUrl.startsWith('https:'))
    throw new InvalidRequestError(
      'CLEARTEXT_ADDRESS',
      `${baseUrl} is a cleartext address. Use https, or remove --ca-file and WRIT_CA_FILE.`,
    );
  return createWritClient({ baseUrl, apiKey, ca: readAuthorities(caFile) });
}

function readAuthorities(file: string): string {
  const fault = (why: string, cause?: unknown) =>
    new InvalidRequestError('INVALID_TLS_FILE', `${file} ${why}.`, { field: 'ca-file' }, { cause });
  try {
    const pem = readFileSync(file, 'utf8');
    if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    throw fault(`cannot be read (${code})`, cause);
  }
  throw fault('contains no certificate in PEM');
}
