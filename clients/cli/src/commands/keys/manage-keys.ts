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
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { showData } from '../../output/show.ts';

/** Options of every command of `writ keys`. */
export interface FileOptions {
  readonly data?: string;
}

/** Options of `writ keys list`. */
export interface ListOptions extends FileOptions, FormatOptions {}

/** Options of `writ keys create`. */
export interface CreateOptions extends ListOptions {
  readonly tenant: string;
  readonly subject: string;
  readonly role: readonly string[];
  readonly agent?: string;
}

/**
 * Creates a key and prints it.
 * @throws InvalidRequestError INVALID_ROLES, and what {@link ApiKeys} throws
 */
export async function createKey(options: CreateOptions, io: CliIo): Promise<Exit> {
  const { tenant, subject, agent } = options;
  const roles = options.role.map(roleFrom);
  const person = { tenant, subject, roles, ...omitUndefined({ agent }) };
  const key = await open(options, io).create(person);
  showData(io, options, { key, ...person }, () => [key]);
  const file = resolve(keysFileOf(options, io));
  const use = agent === undefined ? 'accepts it' : `accepts it from external agent ${agent}`;
  io.warn(`Store the key now; it is not shown again. The platform that reads ${file} ${use}.`);
  return EXIT.success;
}

/** Prints the id, tenant, subject, rights and creation time of each key, oldest first, but not the key itself. */
export function listKeys(options: ListOptions, io: CliIo): Exit {
  const known = open(options, io).list();
  showData(io, options, { keys: known }, () => known.map(lineOf));
  return EXIT.success;
}

/** Revokes a key; fails if no key has this id. */
export async function revokeKey(id: string, options: FileOptions, io: CliIo): Promise<Exit> {
  const known = await open(options, io).revoke(id);
  if (!known) io.warn(`Key ${id} does not exist.`);
  return known ? EXIT.success : EXIT.failure;
}

function lineOf({ id, tenant, subject, roles, agent, createTime }: ApiKeyInfo): string {
  const rights = agent === undefined ? roles.join(',') : `agent:${agent}`;
  return [id, tenant, subject, rights, createTime.toISOString()].join('  ');
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
