import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import { composeEnv } from '../../../scripts/compose-env.ts';

/** The root of the repository. */
export const ROOT = resolve(import.meta.dirname, '../../..');

/** Text of docker-compose.yml. */
export const composeText = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');

/** A container, with the fields that tests use. */
export interface ComposeService {
  readonly image?: string;
  readonly user?: string;
  readonly profiles: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly network_mode?: string;
  readonly ports?: readonly string[];
  readonly command?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly healthcheck?: object;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

/** The parsed docker-compose.yml. */
export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
  readonly volumes: Readonly<Record<string, null>>;
}

/** The variables of the .env that `npm run compose-env` writes. */
export const generated = new Map(
  composeEnv()
    .split('\n')
    .filter((line) => /^[A-Z]/.test(line))
    .map((line) => line.split('=', 2) as [string, string]),
);

/** Substitutes `${NAME}`, `${NAME:-default}` and `${NAME:?why}`, as compose does. */
function interpolate(source: string): string {
  return source.replaceAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name, kind, rest) => {
    const value = generated.get(name);
    if (value) return value;
    if (kind === '-') return rest;
    throw new Error(`${name} is not set, and npm run compose-env does not generate it.`);
  });
}

/** The file with the values of {@link generated}, substituted after parsing, as compose does. */
export function readCompose(): Compose {
  const filled = (node: unknown): unknown => {
    if (typeof node === 'string') return interpolate(node);
    if (Array.isArray(node)) return node.map(filled);
    if (node === null || typeof node !== 'object') return node;
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, filled(value)]));
  };
  return filled(parse(composeText, { merge: true })) as Compose;
}
