import { describe, expect, it } from 'vitest';
import { DOOR_DEFAULTS, readDoorSettings } from './edge-config.ts';

const OIDC = {
  WRIT_OIDC_ISSUER: 'https://issuer.example',
  WRIT_OIDC_AUDIENCE: 'writ',
  WRIT_OIDC_JWKS_URL: 'https://issuer.example/keys',
};

describe('the settings of the public door', () => {
  it('take no tokens and keep tenants to their defaults unless told otherwise (SYS-4)', () => {
    expect(readDoorSettings({})).toEqual({ ...DOOR_DEFAULTS, oidc: undefined });
  });

  it('read a whole issuer, and the limits of a tenant (SYS-6)', () => {
    const env = {
      ...OIDC,
      WRIT_OIDC_ALGORITHMS: 'ES256',
      WRIT_OIDC_TENANT_CLAIM: 'org',
      WRIT_TENANT_RATE: '5',
      WRIT_TENANT_BURST: '7',
      WRIT_TENANT_MAX_RUNS: '0',
    };
    expect(readDoorSettings(env)).toEqual({
      maxRunsPerTenant: 0,
      tenantRate: { perSecond: 5, burst: 7 },
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
    'stop the start with a sentence that says %s, when they are set by half or open wide (SYS-4)',
    (named, env) => {
      expect(() => readDoorSettings(env)).toThrow(named);
    },
  );
});
