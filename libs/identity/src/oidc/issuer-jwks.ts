import { readFileSync } from 'node:fs';
import { type Clock, UnavailableError } from '@writ/kernel';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from 'jose';
import { fileStamp } from '../private-file.ts';
import type { OidcSettings } from './oidc-settings.ts';

/** How long keys are kept, and how long after a look no other is taken for a key that nobody knows. */
const KEEP_MS = 10 * 60_000;
const COOL_DOWN_MS = 30_000;
const TIMEOUT_MS = 3_000;
/** How long after a look that failed no other is taken. */
const PAUSE_MS = 1_000;
/** How often a file is looked at for changes. */
const LOOK_EVERY_MS = 1_000;

/**
 * The public keys of an issuer, fetched lazily and kept; unknown keys and failures are remembered for a
 * while, so that nobody can have it asked over and over.
 * @throws UnavailableError ISSUER_UNAVAILABLE (from the function it returns) when keys cannot be had:
 *   then nobody comes in (SYS-4)
 */
export function issuerJwks({ jwks }: Pick<OidcSettings, 'jwks'>, clock: Clock): JWTVerifyGetKey {
  return 'url' in jwks ? remoteJwks(jwks.url, clock) : fileJwks(jwks.file, clock);
}

function remoteJwks(url: string, clock: Clock): JWTVerifyGetKey {
  const remote = createRemoteJWKSet(new URL(url), {
    cacheMaxAge: KEEP_MS,
    cooldownDuration: COOL_DOWN_MS,
    timeoutDuration: TIMEOUT_MS,
  });
  let failedAt = Number.NEGATIVE_INFINITY;
  return async (header, token) => {
    const now = clock.now().getTime();
    if (!remote.fresh && Math.abs(now - failedAt) < PAUSE_MS) throw unavailable();
    try {
      return await remote(header, token);
    } catch (error) {
      if (isAboutTheToken(error)) throw error;
      failedAt = now;
      throw unavailable(error);
    }
  };
}

function fileJwks(file: string, clock: Clock): JWTVerifyGetKey {
  let stamp: string | undefined;
  let keys: JWTVerifyGetKey | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  return async (header, token) => {
    const now = clock.now().getTime();
    if (Math.abs(now - lookedAt) >= LOOK_EVERY_MS) {
      const seen = fileStamp(file);
      if (seen === undefined || seen !== stamp) keys = readKeys(file);
      stamp = seen;
      lookedAt = now;
    }
    if (keys === undefined) throw unavailable();
    return await keys(header, token);
  };
}

/** What cannot be read counts as no keys at all: which were withdrawn is unknown. */
function readKeys(file: string): JWTVerifyGetKey | undefined {
  try {
    return createLocalJWKSet(JSON.parse(readFileSync(file, 'utf8')) as JSONWebKeySet);
  } catch {
    // Nobody comes in until the file is whole again; each refusal says so.
    return undefined;
  }
}

function isAboutTheToken(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  );
}

function unavailable(cause?: unknown): UnavailableError {
  return new UnavailableError(
    'ISSUER_UNAVAILABLE',
    "The issuer's keys cannot be had, so its tokens cannot be checked; call again later.",
    {},
    { cause },
  );
}
