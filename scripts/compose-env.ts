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
    // It publishes no events.
    'WRIT_AGENT_PROXY_DATABASE_PASSWORD',
    'POSTGRES_PASSWORD',
    'GRAFANA_PASSWORD',
  ];
  return [
    '# For docker-compose.yml. Keep it to yourself.',
    '# core: what runs agents; full: with Jaeger, Prometheus and Grafana.',
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

/** Returns 160 random bits without characters that a URL escapes; the first is a letter, as NATS requires. */
export function newPassword(): string {
  return `p${randomBytes(20).toString('hex')}`;
}

if (import.meta.main) {
  try {
    writeFileSync(FILE, composeEnv(), { flag: 'wx', mode: 0o600 });
    console.log(`${FILE} was written.`);
  } catch {
    console.error(
      `${FILE} already exists; new passwords would differ from those of the databases.`,
    );
    process.exitCode = 1;
  }
}
