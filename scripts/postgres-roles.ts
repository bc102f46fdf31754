/** Writes deploy/postgres/roles.sql: the database, schema and role of each service on a PostgreSQL server. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { SERVICE_NAMES, type ServiceName } from '@writ/identity';

/** Path of the file. */
export const ROLES_FILE = join(resolve(import.meta.dirname, '..'), 'deploy/postgres/roles.sql');

/** Sessions of a replica: one for writes, four for reads, two for locks, and one during the start. */
const SESSIONS_PER_REPLICA = 8;
const REPLICAS = 8;

/** The objects of a service: a role and a database of the same name, and a schema in it. */
export interface PostgresRole {
  readonly service: ServiceName;
  readonly role: string;
  readonly database: string;
  readonly schema: string;
  /** Environment variable with its password. */
  readonly passwordVariable: string;
}

/** One for each service. */
export const POSTGRES_ROLES: readonly PostgresRole[] = SERVICE_NAMES.map((service) => {
  const schema = service.replaceAll('-', '_');
  const role = `writ_${schema}`;
  const passwordVariable = `WRIT_${schema.toUpperCase()}_DATABASE_PASSWORD`;
  return { service, role, database: role, schema, passwordVariable };
});

/** Expected content of the file. */
export function rolesSql(): string {
  const head = `-- Made by \`npm run postgres-roles\`. Run by an administrator with psql 15 or newer, as often as you like:
--   psql --file deploy/postgres/roles.sql postgres://postgres@host:5432/postgres
-- A role whose password variable is not set keeps the password that it has.
\\set ON_ERROR_STOP on
`;
  return head + POSTGRES_ROLES.map(roleSql).join('');
}

/** Content of the file. */
export function readRolesSql(): string {
  return readFileSync(ROLES_FILE, 'utf8');
}

function roleSql({ service, role, database, schema, passwordVariable }: PostgresRole): string {
  return `
-- ${service}
\\getenv ${schema}_password ${passwordVariable}
select 'create role ${role}' where not exists (select from pg_roles where rolname = '${role}') \\gexec
alter role ${role} login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls connection limit ${SESSIONS_PER_REPLICA * REPLICAS};
\\if :{?${schema}_password}
alter role ${role} password :'${schema}_password';
\\endif
select 'create database ${database} template template0 encoding ''UTF8''' where not exists (select from pg_database where datname = '${database}') \\gexec
revoke all on database ${database} from public;
grant connect on database ${database} to ${role};
\\connect ${database}
revoke all on schema public from public;
create schema if not exists ${schema} authorization ${role};
`;
}

if (import.meta.main) writeFileSync(ROLES_FILE, rolesSql());
