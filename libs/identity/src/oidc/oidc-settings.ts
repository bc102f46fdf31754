/** Signature algorithms that an issuer may use; never a shared secret, never none. */
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

/** Whose tokens are taken at the public door, and what they mean. */
export interface OidcSettings {
  /** What `iss` must be. */
  readonly issuer: string;
  /** What `aud` must be, or hold. */
  readonly audience: string;
  /** Where the issuer's public keys are: a URL (https, or http on loopback), or a file. */
  readonly jwks: { readonly url: string } | { readonly file: string };
  readonly algorithms: readonly OidcAlgorithm[];
  /** Names of the claims that say who it is, of which tenant, with which roles. */
  readonly subjectClaim: string;
  readonly tenantClaim: string;
  readonly rolesClaim: string;
}

/** What is taken for granted unless it is set. */
export const OIDC_DEFAULTS = {
  algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
  subjectClaim: 'sub',
  tenantClaim: 'tenant',
  rolesClaim: 'roles',
} as const satisfies Partial<OidcSettings>;
