/** `npm run compose-env`: writes the .env for docker-compose.yml, with new passwords. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';

const CORE_SERVICES = [
  'SUPERVISOR',
  'SPAWN_BUDGET',
  'EXECUTION_METER',
  'TOOL_GATEWAY',
  'AGENT_WORKER',
];
const FILE = resolve(import.meta.dirname, '../.env');

/** Returns the text of a .env: settings, optional variables, and generated passwords. */
export function composeEnv(): string {
  const passwords = [
    ...CORE_SERVICES.map((service) => `WRIT_NATS_${service}_PASSWORD`),
    'WRIT_NATS_OBSERVER_PASSWORD',
    ...CORE_SERVICES.map((service) => `WRIT_${service}_DATABASE_PASSWORD`),
    // agent-proxy has a database, but publishes no events.
    'WRIT_AGENT_PROXY_DATABASE_PASSWORD',
    'POSTGRES_PASSWORD',
    'GRAFANA_PASSWORD',
  ];
  return [
    '# For docker-compose.yml. Contains passwords; keep it secret.',
    '# core: Writ, NATS and PostgreSQL; full: also the OpenTelemetry Collector, Jaeger, Prometheus and Grafana.',
    'COMPOSE_PROFILES=full',
    '# With the profile core, clear this value.',
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
 * Returns the letter p and 160 random bits in hexadecimal. A URL can contain this text without escapes. The text begins
 * with a letter, because nats-server can parse a value that begins with a digit as a number.
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
