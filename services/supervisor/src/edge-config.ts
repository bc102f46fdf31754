import { ConfigError, type Environment, readEnv, variable } from '@writ/config';
import {
  OIDC_ALGORITHMS,
  OIDC_DEFAULTS,
  type OidcAlgorithm,
  type OidcSettings,
  type TenantRate,
} from '@writ/identity';
import type { TlsFileNames } from '@writ/rpc';
import type { ConsoleSettings } from './console.ts';

/** The configuration of the public listener and of the limits of runs and calls. */
export interface EdgeConfig {
  readonly maxRunsPerTenant: number;
  readonly maxQueuedRuns: number;
  readonly maxQueuedRunsPerTenant: number;
  readonly tenantRate: TenantRate;
  readonly oidc: OidcSettings | undefined;
  /** Origins of web pages that may call the public listener (CORS). */
  readonly allowedOrigins: readonly string[];
  /** The TLS files of the listener; undefined = cleartext. */
  readonly edgeTls: TlsFileNames | undefined;
  readonly console: ConsoleSettings;
}

/** The defaults of the public listener and of the limits of runs and calls. */
export const EDGE_DEFAULTS = {
  maxRunsPerTenant: 1_000,
  maxQueuedRuns: 2_048,
  maxQueuedRunsPerTenant: 512,
  tenantRate: { perSecond: 500, burst: 1_000 },
  allowedOrigins: [],
  console: {
    folder: undefined,
    traceUrl: undefined,
    oidcClientId: undefined,
    oidcScope: 'openid profile',
  },
} as const;

/**
 * Reads the configuration of the public listener.
 * @throws ConfigError naming every malformed variable, or, if no variable is malformed, the first missing or
 *   conflicting TLS or OIDC variable
 */
export function readEdgeConfig(env: Environment): EdgeConfig {
  const { perSecond, burst, certFile, keyFile, ...values } = readEnv(env, {
    certFile: variable.string('WRIT_EDGE_TLS_CERT_FILE', {
      optional: true,
      about: 'PEM file with the certificate of the public listener',
    }),
    keyFile: variable.string('WRIT_EDGE_TLS_KEY_FILE', {
      optional: true,
      about: 'PEM file with the key of that certificate',
    }),
    consoleFolder: variable.string('WRIT_CONSOLE_DIR', {
      optional: true,
      about:
        'the folder with the built files of the console; default: the files in the package @writ/console',
    }),
    traceUrl: variable.string('WRIT_CONSOLE_TRACE_URL', {
      optional: true,
      pattern: /^https?:\/\/\S+\{trace_id\}\S*$/,
      about:
        'the URL of a trace to which the console links, such as http://127.0.0.1:16686/trace/{trace_id}',
    }),
    oidcClientId: variable.string('WRIT_CONSOLE_OIDC_CLIENT_ID', {
      optional: true,
      about: 'the client of the OIDC issuer with which people sign in to the console',
    }),
    oidcScope: variable.string('WRIT_CONSOLE_OIDC_SCOPE', {
      default: EDGE_DEFAULTS.console.oidcScope,
      about: 'the scope that the console requests',
    }),
    maxRunsPerTenant: variable.integer('WRIT_TENANT_MAX_RUNS', {
      default: EDGE_DEFAULTS.maxRunsPerTenant,
      min: 0,
      about: 'limit of runs in progress of one tenant',
    }),
    maxQueuedRuns: variable.integer('WRIT_MAX_QUEUED_RUNS', {
      default: EDGE_DEFAULTS.maxQueuedRuns,
      min: 1,
      about: 'limit of runs of all tenants that are waiting to start',
    }),
    maxQueuedRunsPerTenant: variable.integer('WRIT_TENANT_MAX_QUEUED_RUNS', {
      default: EDGE_DEFAULTS.maxQueuedRunsPerTenant,
      min: 1,
      about: 'limit of runs of one tenant that are waiting to start; lowered under sustained load',
    }),
    perSecond: variable.integer('WRIT_TENANT_RATE', {
      default: EDGE_DEFAULTS.tenantRate.perSecond,
      min: 1,
      about:
        'limit of public calls of one tenant per second; Halt, Resume and ListHalts by administrators and operators do not count',
    }),
    burst: variable.integer('WRIT_TENANT_BURST', {
      default: EDGE_DEFAULTS.tenantRate.burst,
      min: 1,
      about: 'limit of public calls of one tenant in a burst',
    }),
    allowedOrigins: variable.list('WRIT_EDGE_ALLOWED_ORIGINS', {
      default: [...EDGE_DEFAULTS.allowedOrigins],
      item: /^https?:\/\/[^\s/,]+$/,
      example: 'https://console.example.com',
      about: 'the origins of web pages on other hosts that may call the public listener (CORS)',
    }),
    issuer: variable.url('WRIT_OIDC_ISSUER', {
      optional: true,
      about: 'the OIDC issuer whose tokens are accepted in addition to API keys',
    }),
    audience: variable.string('WRIT_OIDC_AUDIENCE', {
      optional: true,
      about: 'the required audience of OIDC tokens',
    }),
    jwksUrl: variable.url('WRIT_OIDC_JWKS_URL', {
      optional: true,
      about: 'URL of the public keys of the OIDC issuer; https, or http on loopback',
    }),
    jwksFile: variable.string('WRIT_OIDC_JWKS_FILE', {
      optional: true,
      about: 'the file with the public keys of the OIDC issuer, instead of a URL',
    }),
    algorithms: variable.list('WRIT_OIDC_ALGORITHMS', {
      default: [...OIDC_DEFAULTS.algorithms],
      item: new RegExp(`^(${OIDC_ALGORITHMS.join('|')})$`),
      about: 'the accepted signature algorithms',
    }),
    subjectClaim: claimVariable('WRIT_OIDC_SUBJECT_CLAIM', 'subject', OIDC_DEFAULTS.subjectClaim),
    tenantClaim: claimVariable('WRIT_OIDC_TENANT_CLAIM', 'tenant', OIDC_DEFAULTS.tenantClaim),
    rolesClaim: claimVariable('WRIT_OIDC_ROLES_CLAIM', 'roles', OIDC_DEFAULTS.rolesClaim),
  });
  const { consoleFolder, traceUrl, oidcClientId, oidcScope, ...limits } = values;
  const { maxRunsPerTenant, maxQueuedRuns, maxQueuedRunsPerTenant, allowedOrigins, ...oidc } =
    limits;
  return {
    maxRunsPerTenant,
    maxQueuedRuns,
    maxQueuedRunsPerTenant,
    tenantRate: { perSecond, burst },
    allowedOrigins,
    oidc: oidcFrom(oidc),
    edgeTls: edgeTlsFrom(certFile, keyFile),
    console: { folder: consoleFolder, traceUrl, oidcClientId, oidcScope },
  };
}

/** An incomplete TLS configuration must not result in a cleartext listener. */
function edgeTlsFrom(
  certFile: string | undefined,
  keyFile: string | undefined,
): TlsFileNames | undefined {
  if (certFile !== undefined && keyFile !== undefined) return { certFile, keyFile };
  if (certFile === undefined && keyFile === undefined) return undefined;
  throw invalidEdge('WRIT_EDGE_TLS_CERT_FILE and WRIT_EDGE_TLS_KEY_FILE must be set together.');
}

function claimVariable(name: string, content: string, claim: string) {
  return variable.string(name, { default: claim, about: `the claim with the ${content}` });
}

interface OidcValues extends Pick<OidcSettings, 'subjectClaim' | 'tenantClaim' | 'rolesClaim'> {
  readonly issuer: string | undefined;
  readonly audience: string | undefined;
  readonly jwksUrl: string | undefined;
  readonly jwksFile: string | undefined;
  readonly algorithms: readonly string[];
}

/** All settings or none: an incomplete OIDC configuration would accept more tokens than intended. */
function oidcFrom(values: OidcValues): OidcSettings | undefined {
  const { issuer, audience, jwksUrl, jwksFile, algorithms, ...claims } = values;
  if ([issuer, audience, jwksUrl, jwksFile].every((value) => value === undefined)) return undefined;
  if (issuer === undefined) throw missing('WRIT_OIDC_ISSUER');
  if (audience === undefined) throw missing('WRIT_OIDC_AUDIENCE');
  return {
    ...claims,
    issuer,
    audience,
    algorithms: algorithms as readonly OidcAlgorithm[],
    jwks: jwksFrom(jwksUrl, jwksFile),
  };
}

function jwksFrom(url: string | undefined, file: string | undefined): OidcSettings['jwks'] {
  if (url !== undefined && file !== undefined) {
    throw invalidEdge('Set WRIT_OIDC_JWKS_URL or WRIT_OIDC_JWKS_FILE, not both.');
  }
  if (file !== undefined) return { file };
  if (url === undefined) throw missing('WRIT_OIDC_JWKS_URL or WRIT_OIDC_JWKS_FILE');
  const { protocol, hostname } = new URL(url);
  if (protocol === 'https:' || LOOPBACK.includes(hostname)) return { url };
  throw invalidEdge(
    'WRIT_OIDC_JWKS_URL must be https, because keys fetched in cleartext can be replaced.',
  );
}

const LOOPBACK: readonly string[] = ['127.0.0.1', 'localhost', '[::1]'];

function missing(name: string): ConfigError {
  return invalidEdge(
    `${name} is required when WRIT_OIDC_ISSUER, WRIT_OIDC_AUDIENCE, WRIT_OIDC_JWKS_URL or WRIT_OIDC_JWKS_FILE is set: tokens need an issuer, an audience and keys.`,
  );
}

function invalidEdge(problem: string): ConfigError {
  return new ConfigError('The environment', [problem]);
}
