import { createWritClient, type WritClient } from '@writ/client';
import { InvalidRequestError } from '@writ/kernel';
import type { Command } from 'commander';
import type { CliIo } from './io.ts';

/** The options of every command that talks to a platform. */
export interface DoorOptions {
  readonly address?: string;
}

/** Adds the options that `openDoor` reads. */
export function withDoor(command: Command): Command {
  return command.option('--address <url>', 'the public door (WRIT_ADDRESS, http://127.0.0.1:8080)');
}

/** A client of the public services; throws InvalidRequestError when no API key is set. */
export function openDoor(options: DoorOptions, { env }: CliIo): WritClient {
  const apiKey = env.WRIT_API_KEY;
  if (apiKey === undefined || apiKey === '')
    throw new InvalidRequestError(
      'API_KEY_MISSING',
      'Set WRIT_API_KEY to the API key to call the platform with.',
    );
  const baseUrl = options.address ?? env.WRIT_ADDRESS ?? 'http://127.0.0.1:8080';
  return createWritClient({ baseUrl, apiKey });
}
