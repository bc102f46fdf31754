-- Made by `npm run postgres-roles`. Run by an administrator with psql 15 or newer, as often as you like:
--   psql --file deploy/postgres/roles.sql postgres://postgres@host:5432/postgres
-- A role whose password variable is not set keeps the password that it has.
\set ON_ERROR_STOP on

-- supervisor
\getenv supervisor_password WRIT_SUPERVISOR_DATABASE_PASSWORD
select 'create role writ_supervisor' where not exists (select from pg_roles where rolname = 'writ_supervisor') \gexec
alter role writ_supervisor login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls connection limit 64;
\if :{?supervisor_password}
alter role writ_supervisor password :'supervisor_password';
\endif
select 'create database writ_supervisor template template0 encoding ''UTF8''' where not exists (select from pg_database where datname = 'writ_supervisor') \gexec
revoke all on database writ_supervisor from public;
grant connect on database writ_supervisor to writ_supervisor;
\connect writ_supervisor
revoke all on schema public from public;
create schema if not exists supervisor authorization writ_supervisor;

-- spawn-budget
\getenv spawn_budget_password WRIT_SPAWN_BUDGET_DATABASE_PASSWORD
select 'create role writ_spawn_budget' where not exists (select from pg_roles where rolname = 'writ_spawn_budget') \gexec
alter role writ_spawn_budget login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls connection limit 64;
\if :{?spawn_budget_password}
alter role writ_spawn_budget password :'spawn_budget_password';
\endif
select 'create database writ_spawn_budget template template0 encoding ''UTF8''' where not exists (select from pg_database where datname = 'writ_spawn_budget') \gexec
revoke all on database writ_spawn_budget from public;
grant connect on database writ_spawn_budget to writ_spawn_budget;
\connect writ_spawn_budget
revoke all on schema public from public;
create schema if not exists spawn_budget authorization writ_spawn_budget;

-- execution-meter
\getenv execution_meter_password WRIT_EXECUTION_METER_DATABASE_PASSWORD
select 'create role writ_execution_meter' where not exists (select from pg_roles where rolname = 'writ_execution_meter') \gexec
alter role writ_execution_meter login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls connection limit 64;
\if :{?execution_meter_password}
alter role writ_execution_meter password :'execution_meter_password';
\endif
select 'create database writ_execution_meter template template0 encoding ''UTF8''' where not exists (select from pg_database where datname = 'writ_execution_meter') \gexec
revoke all on database writ_execution_meter from public;
grant connect on database writ_execution_meter to writ_execution_meter;
\connect writ_execution_meter
revoke all on schema public from public;
create schema if not exists execution_meter authorization writ_execution_meter;

-- tool-gateway
\getenv tool_gateway_password WRIT_TOOL_GATEWAY_DATABASE_PASSWORD
select 'create role writ_tool_gateway' where not exists (select from pg_roles where rolname = 'writ_tool_gateway') \gexec
alter role writ_tool_gateway login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls connection limit 64;
\if :{?tool_gateway_password}
alter role writ_tool_gateway password :'tool_gateway_password';
\endif
select 'create database writ_tool_gateway template template0 encoding ''UTF8''' where not exists (select from pg_database where datname = 'writ_tool_gateway') \gexec
revoke all on database writ_tool_gateway from public;
grant connect on database writ_tool_gateway to writ_tool_gateway;
\connect writ_tool_gateway
revoke all on schema public from public;
create schema if not exists tool_gateway authorization writ_tool_gateway;

-- agent-worker
\getenv agent_worker_password WRIT_AGENT_WORKER_DATABASE_PASSWORD
select 'create role writ_agent_worker' where not exists (select from pg_roles where rolname = 'writ_agent_worker') \gexec
alter role writ_agent_worker login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls connection limit 64;
\if :{?agent_worker_password}
alter role writ_agent_worker password :'agent_worker_password';
\endif
select 'create database writ_agent_worker template template0 encoding ''UTF8''' where not exists (select from pg_database where datname = 'writ_agent_worker') \gexec
revoke all on database writ_agent_worker from public;
grant connect on database writ_agent_worker to writ_agent_worker;
\connect writ_agent_worker
revoke all on schema public from public;
create schema if not exists agent_worker authorization writ_agent_worker;
