import { ConfigError, type Environment, readEnv, variable } from '@writ/config';
import {
  OIDC_ALGORITHMS,
  OIDC_DEFAULTS,
  type OidcAlgorithm,
  type OidcSettings,
  type TenantRate,
} from '@writ/identity';
import type { TlsFileNames } from '@writ/rpc';

/** The configuration of the public listener. */
export interface DoorSettings {
  readonly maxRunsPerTenant: number;
  readonly tenantRate: TenantRate;
  readonly oidc: OidcSettings | undefined;
  /** The TLS files of the listener; undefined = cleartext. */
  readonly edgeTls: TlsFileNames | undefined;
}

/** The default limits of a tenant. */
export const DOOR_DEFAULTS = {
  maxRunsPerTenant: 1_000,
  tenantRate: { perSecond: 500, burst: 1_000 },
} as const;

/**
 * Reads the configuration of the public listener.
 * @throws ConfigError naming every variable that is missing or malformed
 */
export function readDoorSettings(env: Environment): DoorSettings {
  const { maxRunsPerTenant, perSecond, burst, certFile, keyFile, ...oidc } = readEnv(env, {
    certFile: variable.string('WRIT_EDGE_TLS_CERT_FILE', {
      optional: true,
      about: 'a PEM file: the certificate that clients see',
    }),
    keyFile: variable.string('WRIT_EDGE_TLS_KEY_FILE', {
      optional: true,
      about: 'a PEM file: the key of that certificate',
    }),
    maxRunsPerTenant: variable.integer('WRIT_TENANT_MAX_RUNS', {
      default: DOOR_DEFAULTS.maxRunsPerTenant,
      min: 0,
      about: 'how many runs of one tenant may be under way',
    }),
    perSecond: variable.integer('WRIT_TENANT_RATE', {
      default: DOOR_DEFAULTS.tenantRate.perSecond,
      min: 1,
      about: 'how many public calls of one tenant are taken in a second',
    }),
    burst: variable.integer('WRIT_TENANT_BURST', {
      default: DOOR_DEFAULTS.tenantRate.burst,
      min: 1,
      about: 'how many public calls of one tenant are taken at once',
    }),
    issuer: variable.url('WRIT_OIDC_ISSUER', {
      optional: true,
      about: 'the issuer whose tokens are taken besides API keys',
    }),
    audience: variable.string('WRIT_OIDC_AUDIENCE', {
      optional: true,
      about: 'the audience that its tokens must be for',
    }),
    jwksUrl: variable.url('WRIT_OIDC_JWKS_URL', {
      optional: true,
      about: 'where its public keys are, https or http on loopback',
    }),
    jwksFile: variable.string('WRIT_OIDC_JWKS_FILE', {
      optional: true,
      about: 'the file with its public keys, instead of a URL',
    }),
    algorithms: variable.list('WRIT_OIDC_ALGORITHMS', {
      default: [...OIDC_DEFAULTS.algorithms],
      item: new RegExp(`^(${OIDC_ALGORITHMS.join('|')})$`),
      about: 'the signature algorithms that are taken',
    }),
    subjectClaim: claimVariable('WRIT_OIDC_SUBJECT_CLAIM', OIDC_DEFAULTS.subjectClaim),
    tenantClaim: claimVariable('WRIT_OIDC_TENANT_CLAIM', OIDC_DEFAULTS.tenantClaim),
    rolesClaim: claimVariable('WRIT_OIDC_ROLES_CLAIM', OIDC_DEFAULTS.rolesClaim),
  });
  return {
    maxRunsPerTenant,
    tenantRate: { perSecond, burst },
    oidc: oidcFrom(oidc),
    edgeTls: edgeTlsFrom(certFile, keyFile),
  };
}

/** An incomplete TLS configuration must not result in a cleartext listener. */
function edgeTlsFrom(
  certFile: string | undefined,
  keyFile: string | undefined,
): TlsFileNames | undefined {
  if (certFile !== undefined && keyFile !== undefined) return { certFile, keyFile };
  if (certFile === undefined && keyFile === undefined) return undefined;
  throw badDoor(
    'WRIT_EDGE_TLS_CERT_FILE and WRIT_EDGE_TLS_KEY_FILE are only of use together; set both, or neither.',
  );
}

function claimVariable(name: string, claim: string) {
  return variable.string(name, { default: claim, about: 'the claim that says so' });
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
    throw badDoor('Set WRIT_OIDC_JWKS_URL or WRIT_OIDC_JWKS_FILE, not both.');
  }
  if (file !== undefined) return { file };
  if (url === undefined) throw missing('WRIT_OIDC_JWKS_URL or WRIT_OIDC_JWKS_FILE');
  const { protocol, hostname } = new URL(url);
  if (protocol === 'https:' || LOOPBACK.includes(hostname)) return { url };
  throw badDoor('WRIT_OIDC_JWKS_URL must be https: keys that anybody can swap prove nothing.');
}

const LOOPBACK: readonly string[] = ['127.0.0.1', 'localhost', '[::1]'];

function missing(name: string): ConfigError {
  return badDoor(`${name} is not set: a token is taken only when issuer, audience and keys are.`);
}

function badDoor(problem: string): ConfigError {
  return new ConfigError('The environment', [problem]);
}
