/** `npm run compose-env`: writes the .env for docker-compose.yml, with new passwords. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

const SERVICES = ['SUPERVISOR', 'SPAWN_BUDGET', 'EXECUTION_METER', 'TOOL_GATEWAY', 'AGENT_WORKER'];
const FILE = resolve(import.meta.dirname, '../.env');

/** The text of a .env: generated variables, then optional ones. */
export function composeEnv(): string {
  const passwords = [
    ...SERVICES.map((service) => `WRIT_NATS_${service}_PASSWORD`),
    'WRIT_NATS_OBSERVER_PASSWORD',
    ...SERVICES.map((service) => `WRIT_${service}_DATABASE_PASSWORD`),
    // agent-proxy has a database, but publishes no events.
    'WRIT_AGENT_PROXY_DATABASE_PASSWORD',
    'POSTGRES_PASSWORD',
    'GRAFANA_PASSWORD',
  ];
  return [
    '# For docker-compose.yml. Contains passwords; keep it secret.',
    '# core: the services that run agents; full: also Jaeger, Prometheus and Grafana.',
    'COMPOSE_PROFILES=full',
    '# Empty with the profile core.',
    'OTEL_EXPORTER_OTLP_ENDPOINT=http://otel-collector:4317',
    '',
    '# A real model in place of the simulator.',
    '#OPENAI_API_KEY=',
    '#OPENAI_BASE_URL=https://api.openai.com/v1',
    '#OPENAI_MODEL=gpt-4.1-mini',
    '',
    ...passwords.map((name) => `${name}=${newPassword()}`),
    '',
  ].join('\n');
}

/**
 * Returns 160 random bits as text without characters that a URL escapes; the first character is a letter, as NATS
 * requires.
 */
export function newPassword(): string {
  return `p${randomBytes(20).toString('hex')}`;
}

/** Writes a new .env; returns the problem in one sentence, or undefined. */
export function writeComposeEnv(file: string): string | undefined {
  try {
    writeFileSync(file, composeEnv(), { flag: 'wx', mode: 0o600 });
    return undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    return code === 'EEXIST'
      ? `${file} already exists; new passwords would differ from those of the databases.`
      : `${file} cannot be written (${code}).`;
  }
}

if (import.meta.main) {
  const problem = writeComposeEnv(FILE);
  if (problem === undefined) console.log(`${FILE} was written.`);
  else {
    console.error(problem);
    process.exitCode = 1;
  }
}
