import type { Command } from 'commander';

/** Options of every command that calls a platform. */
export interface ClientOptions {
  readonly address?: string;
  readonly apiKeyFile?: string;
  readonly caFile?: string;
}

/** Adds the options of a command that calls a platform. */
export function withClientOptions(command: Command): Command {
  return command
    .option(
      '--address <address>',
      'address of the public API, with or without http:// (WRIT_ADDRESS, 127.0.0.1:8080)',
    )
    .option('--api-key-file <file>', 'file with the API key (WRIT_API_KEY has the key itself)')
    .option('--ca-file <file>', 'CA certificates of the server, in PEM (WRIT_CA_FILE)');
}
