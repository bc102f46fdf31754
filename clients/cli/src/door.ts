import { readFileSync } from 'node:fs';
import { createWritClient, type WritClient } from '@writ/client';
import { InvalidRequestError } from '@writ/kernel';
import type { Command } from 'commander';
import type { CliIo } from './io.ts';

const LOCAL = '127.0.0.1:8080';

/** The options of every command that talks to a platform. */
export interface DoorOptions {
  readonly address?: string;
  readonly caFile?: string;
}

/** Adds the options that `openDoor` reads. */
export function withDoor(command: Command): Command {
  return command
    .option('--address <url>', 'the public door (WRIT_ADDRESS, http://127.0.0.1:8080)')
    .option('--ca-file <file>', 'the authorities that vouch for it, in PEM (WRIT_CA_FILE)');
}

/**
 * A client of the public services.
 * @throws InvalidRequestError when no API key is set, or when authorities are named that cannot be read or
 *   would vouch for nobody, since the address is cleartext
 */
export function openDoor(options: DoorOptions, { env }: CliIo): WritClient {
  const apiKey = env.WRIT_API_KEY;
  if (apiKey === undefined || apiKey === '')
    throw new InvalidRequestError(
      'API_KEY_MISSING',
      'Set WRIT_API_KEY to the API key to call the platform with.',
    );
  const caFile = options.caFile ?? env.WRIT_CA_FILE ?? '';
  const address = options.address ?? env.WRIT_ADDRESS;
  if (caFile === '') return createWritClient({ baseUrl: address ?? `http://${LOCAL}`, apiKey });
  const baseUrl = address ?? `https://${LOCAL}`;
  if (!baseUrl.startsWith('https:'))
    throw new InvalidRequestError(
      'CLEARTEXT_ADDRESS',
      `${baseUrl} is cleartext, where nobody is asked for a certificate: begin it with https, or leave --ca-file and WRIT_CA_FILE out.`,
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
  throw fault('holds no certificate in PEM');
}
