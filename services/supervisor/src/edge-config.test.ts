import { describe, expect, it } from 'vitest';
import { EDGE_DEFAULTS, readEdgeConfig } from './edge-config.ts';

const OIDC = {
  WRIT_OIDC_ISSUER: 'https://issuer.example',
  WRIT_OIDC_AUDIENCE: 'writ',
  WRIT_OIDC_JWKS_URL: 'https://issuer.example/keys',
};

describe('edge config', () => {
  it('accepts no OIDC tokens and applies the default tenant limits when no variable is set (SYS-4)', () => {
    expect(readEdgeConfig({})).toEqual({ ...EDGE_DEFAULTS, oidc: undefined });
  });

  it('reads an issuer and the limits of a tenant (SYS-6)', () => {
    const env = {
      ...OIDC,
      WRIT_OIDC_ALGORITHMS: 'ES256',
      WRIT_OIDC_TENANT_CLAIM: 'org',
      WRIT_TENANT_RATE: '5',
      WRIT_TENANT_BURST: '7',
      WRIT_TENANT_MAX_RUNS: '0',
      WRIT_MAX_QUEUED_RUNS: '30',
      WRIT_TENANT_MAX_QUEUED_RUNS: '3',
    };
    expect(readEdgeConfig(env)).toEqual({
      maxRunsPerTenant: 0,
      maxQueuedRuns: 30,
      maxQueuedRunsPerTenant: 3,
      allowedOrigins: [],
      tenantRate: { perSecond: 5, burst: 7 },
      console: EDGE_DEFAULTS.console,
      oidc: {
        issuer: 'https://issuer.example',
        audience: 'writ',
        jwks: { url: 'https://issuer.example/keys' },
        algorithms: ['ES256'],
        subjectClaim: 'sub',
        tenantClaim: 'org',
        rolesClaim: 'roles',
      },
    });
  });

  it.each([
    ['WRIT_OIDC_ISSUER', { ...OIDC, WRIT_OIDC_ISSUER: '' }],
    ['WRIT_OIDC_AUDIENCE', { ...OIDC, WRIT_OIDC_AUDIENCE: '' }],
    ['WRIT_OIDC_JWKS_URL or WRIT_OIDC_JWKS_FILE', { ...OIDC, WRIT_OIDC_JWKS_URL: '' }],
    ['not both', { ...OIDC, WRIT_OIDC_JWKS_FILE: 'keys.json' }],
    ['must be https', { ...OIDC, WRIT_OIDC_JWKS_URL: 'http://issuer.example/keys' }],
    ['WRIT_OIDC_ALGORITHMS', { ...OIDC, WRIT_OIDC_ALGORITHMS: 'HS256' }],
    ['WRIT_OIDC_ALGORITHMS', { ...OIDC, WRIT_OIDC_ALGORITHMS: 'ES256,none' }],
    ['WRIT_TENANT_RATE', { WRIT_TENANT_RATE: '0' }],
  ])(
    'rejects incomplete or insecure settings with a message that contains %s (SYS-4)',
    (named, env) => {
      expect(() => readEdgeConfig(env)).toThrow(named);
    },
  );
});
