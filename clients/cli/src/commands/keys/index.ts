import { join, resolve } from 'node:path';
import {
  API_KEYS_FILE,
  type ApiKeyInfo,
  type ApiKeys,
  isRole,
  openApiKeys,
  ROLES,
} from '@writ/identity';
import { InvalidRequestError, omitUndefined } from '@writ/kernel';
import type { Role } from '@writ/rpc';
import type { Command } from 'commander';
import type { CliIo, CommandGroup } from '../../io.ts';
import { EXIT } from '../../io.ts';
import { type FormatOptions, showData, withFormat } from '../../output/format.ts';

interface FileOptions {
  readonly data?: string;
}

interface ListOptions extends FileOptions, FormatOptions {}

interface CreateOptions extends ListOptions {
  readonly tenant: string;
  readonly subject: string;
  readonly role: readonly string[];
  readonly agent?: string;
}

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
      'with --role agent: the agent of kind external, from agents.yaml, that the key acts for',
    )
    .action(async (options: CreateOptions) => {
      const { tenant, subject, agent } = options;
      const roles = options.role.map(roleFrom);
      const person = { tenant, subject, roles, ...omitUndefined({ agent }) };
      const key = await open(options, io).create(person);
      showData(io, options, { key, ...person }, () => [key]);
      const file = resolve(keysFileOf(options, io));
      const use = agent === undefined ? 'accepts it' : `accepts it from external agent ${agent}`;
      io.warn(`Store the key now; it is not shown again. The platform with ${file} ${use}.`);
      done(EXIT.success);
    });

  withFormat(withFile(keys.command('list')))
    .description('List keys, oldest first, without their text.')
    .action((options: ListOptions) => {
      const known = open(options, io).list();
      showData(io, options, { keys: known }, () => known.map(lineOf));
      done(EXIT.success);
    });

  withFile(keys.command('revoke'))
    .argument('<id>', 'the key, as `writ keys list` shows it')
    .description('Revoke a key. No restart is required.')
    .action(async (id: string, options: FileOptions) => {
      const known = await open(options, io).revoke(id);
      if (!known) io.warn(`Key ${id} does not exist.`);
      done(known ? EXIT.success : EXIT.failure);
    });
};

function lineOf({ id, tenant, subject, roles, agent, createTime }: ApiKeyInfo): string {
  const rights = agent === undefined ? roles.join(',') : `agent:${agent}`;
  return [id, tenant, subject, rights, createTime.toISOString()].join('  ');
}

function withFile(command: Command): Command {
  return command.option('--data <folder>', 'the data folder (WRIT_DATA, .writ)');
}

function open(options: FileOptions, io: CliIo): ApiKeys {
  return openApiKeys({ file: keysFileOf(options, io) });
}

function keysFileOf({ data }: FileOptions, { env }: CliIo): string {
  return join(data ?? (env.WRIT_DATA || '.writ'), API_KEYS_FILE);
}

function roleFrom(role: string): Role {
  if (isRole(role)) return role;
  throw new InvalidRequestError('INVALID_ROLES', `--role must be one of ${ROLES.join(', ')}.`, {
    field: 'role',
  });
}
