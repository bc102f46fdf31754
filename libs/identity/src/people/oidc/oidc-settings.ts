/** Supported signature algorithms: asymmetric only. */
export const OIDC_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;

/** One of {@link OIDC_ALGORITHMS}. */
export type OidcAlgorithm = (typeof OIDC_ALGORITHMS)[number];

/** The OIDC issuer of the public port and the mapping of its claims. */
export interface OidcSettings {
  /** The required `iss`. */
  readonly issuer: string;
  /** The required `aud`, or one of its values. */
  readonly audience: string;
  /** The key set of the issuer: a URL (https, or http on loopback) or a file. */
  readonly jwks: { readonly url: string } | { readonly file: string };
  readonly algorithms: readonly OidcAlgorithm[];
  /** Names of the claims that contain subject, tenant and roles. */
  readonly subjectClaim: string;
  readonly tenantClaim: string;
  readonly rolesClaim: string;
}

/** Default settings. */
export const OIDC_DEFAULTS = {
  algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
  subjectClaim: 'sub',
  tenantClaim: 'tenant',
  rolesClaim: 'roles',
} as const satisfies Partial<OidcSettings>;
