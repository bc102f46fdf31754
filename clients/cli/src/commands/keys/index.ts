import { ROLES } from '@writ/identity/names';
import type { Command } from 'commander';
import type { CommandGroup } from '../../io.ts';
import { withFormat } from '../../output/format.ts';
import type { CreateOptions, FileOptions, ListOptions } from './manage-keys.ts';

/** `writ keys`: manages the API keys in a platform's data folder. */
export const keyCommands: CommandGroup = (program, io, done) => {
  const keys = program.command('keys').description("API keys in a platform's data folder.");

  withFormat(withFile(keys.command('create')))
    .description('Create a key. The key is printed once and cannot be retrieved later.')
    .requiredOption('--tenant <tenant>', 'the tenant of the key')
    .requiredOption('--subject <name>', 'the holder of the key, as shown in audit records')
    .requiredOption('--role <role...>', ROLES.join(', '))
    .option(
      '--agent <name>',
      'required with --role agent: the external agent in agents.yaml that the key acts for',
    )
    .action(async (options: CreateOptions) => {
      const { createKey } = await import('./manage-keys.ts');
      done(await createKey(options, io));
    });

  withFormat(withFile(keys.command('list')))
    .description('List the id and rights of each key, oldest first. The key itself is not shown.')
    .action(async (options: ListOptions) => {
      const { listKeys } = await import('./manage-keys.ts');
      done(listKeys(options, io));
    });

  withFile(keys.command('revoke'))
    .argument('<id>', 'the key, as `writ keys list` shows it')
    .description('Revoke a key. No restart is required.')
    .action(async (id: string, options: FileOptions) => {
      const { revokeKey } = await import('./manage-keys.ts');
      done(await revokeKey(id, options, io));
    });
};

function withFile(command: Command): Command {
  return command.option('--data <folder>', 'the data folder (WRIT_DATA, .writ)');
}
