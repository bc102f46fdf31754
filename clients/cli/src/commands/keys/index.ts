import { join } from 'node:path';
import { API_KEYS_FILE, type ApiKeys, isRole, openApiKeys, ROLES } from '@writ/identity';
import { InvalidRequestError } from '@writ/kernel';
import type { Role } from '@writ/rpc';
import type { Command } from 'commander';
import type { CommandGroup } from '../../command-group.ts';
import type { CliIo } from '../../io.ts';
import { EXIT } from '../../io.ts';

interface FileOptions {
  readonly data?: string;
}

interface CreateOptions extends FileOptions {
  readonly tenant: string;
  readonly subject: string;
  readonly role: readonly string[];
}

/** `writ keys`: API keys of people, in the key file of a platform's data folder. */
export const keyCommands: CommandGroup = (program, io, done) => {
  const keys = program.command('keys').description("API keys, in a platform's data folder.");

  withFile(keys.command('create'))
    .description('Make a key. Its text is printed this once and is nowhere to be had again.')
    .requiredOption('--tenant <tenant>', 'the tenant that it is for')
    .requiredOption('--subject <name>', 'who it is, as on record')
    .requiredOption('--role <role...>', ROLES.join(', '))
    .action(async (options: CreateOptions) => {
      const { tenant, subject } = options;
      const roles = options.role.map(roleFrom);
      io.print(await open(options, io).create({ tenant, subject, roles }));
      io.warn('This is the only time that the key is shown.');
      done(EXIT.holds);
    });

  withFile(keys.command('list'))
    .description('List keys, oldest first, without their text.')
    .action((options: FileOptions) => {
      for (const { id, tenant, subject, roles, createTime } of open(options, io).list()) {
        io.print([id, tenant, subject, roles.join(','), createTime.toISOString()].join('  '));
      }
      done(EXIT.holds);
    });

  withFile(keys.command('revoke'))
    .argument('<id>', 'the key, as `writ keys list` shows it')
    .description('Revoke a key, without a restart of anything.')
    .action(async (id: string, options: FileOptions) => {
      const known = await open(options, io).revoke(id);
      if (!known) io.warn(`There is no key ${id}.`);
      done(known ? EXIT.holds : EXIT.fails);
    });
};

function withFile(command: Command): Command {
  return command.option('--data <folder>', 'the data folder (WRIT_DATA, .writ)');
}

function open({ data }: FileOptions, { env }: CliIo): ApiKeys {
  const folder = data ?? (env.WRIT_DATA || '.writ');
  return openApiKeys({ file: join(folder, API_KEYS_FILE) });
}

function roleFrom(role: string): Role {
  if (isRole(role)) return role;
  throw new InvalidRequestError('INVALID_ROLES', `--role must be one of ${ROLES.join(', ')}.`, {
    field: 'role',
  });
}
