import { SERVICE_NAMES } from '@writ/identity/names';
import { Argument, type Command } from 'commander';
import type { CommandGroup } from '../../io.ts';
import { withFormat } from '../../output/format.ts';
import type { KeyOptions, RevokeOptions } from './manage-signing-keys.ts';

/** `writ signing-keys`: manages the keys with which services sign tokens, writs and receipts. */
export const signingKeyCommands: CommandGroup = (program, io, done) => {
  const keys = program
    .command('signing-keys')
    .description('Signing keys of services, in a data folder. Running services reload them.');

  withFormat(withFolder(keys.command('list')))
    .description('List the keys of each service, the signing key first.')
    .action(async (options: KeyOptions) => {
      const { listSigningKeys } = await import('./manage-signing-keys.ts');
      done(await listSigningKeys(options, io));
    });

  withFormat(withFolder(keys.command('rotate').addArgument(serviceArgument())))
    .description('Replace the signing key. Signatures of the old key stay valid for 30 days.')
    .action(async (service: string, options: KeyOptions) => {
      const { rotateSigningKey } = await import('./manage-signing-keys.ts');
      done(await rotateSigningKey(service, options, io));
    });

  withFormat(withFolder(keys.command('revoke').addArgument(serviceArgument())))
    // An option, because an id can begin with a hyphen.
    .requiredOption('--key <id>', 'the key, as `writ signing-keys list` shows it')
    .description('Expire a key now, and replace it if it is the signing key.')
    .action(async (service: string, options: RevokeOptions) => {
      const { revokeSigningKey } = await import('./manage-signing-keys.ts');
      done(await revokeSigningKey(service, options, io));
    });
};

function serviceArgument(): Argument {
  return new Argument('<service>', 'the service that signs with the key').choices(SERVICE_NAMES);
}

function withFolder(command: Command): Command {
  return command.option('--data <folder>', 'the data folder (WRIT_DATA, .writ)');
}
