import { readFileSync } from 'node:fs';
import { type Clock, isWritError, UnavailableError } from '@writ/kernel';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from 'jose';
import { fileStamp } from '../../keys/private-file.ts';
import type { OidcSettings } from './oidc-settings.ts';

/**
 * `CACHE_MS` is the maximum age of cached keys, `COOL_DOWN_MS` the minimum interval between fetches for unknown key
 * ids, ms.
 */
const CACHE_MS = 10 * 60_000;
const COOL_DOWN_MS = 30_000;
const TIMEOUT_MS = 3_000;
/** Minimum interval after a failed fetch, ms. */
const PAUSE_MS = 1_000;
/** Poll interval for changes of a key file, ms. */
const POLL_INTERVAL_MS = 1_000;

/**
 * Returns a function that looks up the public keys of an issuer, which are fetched on demand and cached. Unknown key
 * ids cause at most one fetch per {@link COOL_DOWN_MS}, and a failed fetch is not repeated for {@link PAUSE_MS}, so
 * that callers cannot cause a fetch for each token.
 * @param onUnavailable called once when the keys become unavailable, with the cause
 * @throws UnavailableError ISSUER_UNAVAILABLE (from the returned function) when the keys are unavailable, so all tokens
 *   are rejected (SYS-4)
 */
export function issuerJwks(
  { jwks }: Pick<OidcSettings, 'jwks'>,
  clock: Clock,
  onUnavailable: (cause: unknown) => void,
): JWTVerifyGetKey {
  let isReported = false;
  const lookUp = 'url' in jwks ? remoteJwks(jwks.url, clock) : fileJwks(jwks.file, clock);
  return async (header, token) => {
    try {
      const key = await lookUp(header, token);
      isReported = false;
      return key;
    } catch (error) {
      if (isWritError(error)) {
        if (!isReported) onUnavailable(error.cause);
        isReported = true;
      }
      throw error;
    }
  };
}

function remoteJwks(url: string, clock: Clock): JWTVerifyGetKey {
  let failedAt = Number.NEGATIVE_INFINITY;
  const isPaused = () => clock.monotonicMs() - failedAt < PAUSE_MS;
  const remote = createRemoteJWKSet(new URL(url), {
    cacheMaxAge: CACHE_MS,
    cooldownDuration: COOL_DOWN_MS,
    timeoutDuration: TIMEOUT_MS,
    // The cooldown of the library starts only after a successful fetch.
    [customFetch]: async (target, init) => {
      if (isPaused()) throw unavailable();
      return await fetch(target, init);
    },
  });
  return async (header, token) => {
    try {
      return await remote(header, token);
    } catch (error) {
      if (isAboutTheToken(error)) throw error;
      if (!isPaused()) failedAt = clock.monotonicMs();
      throw unavailable(error);
    }
  };
}

function fileJwks(file: string, clock: Clock): JWTVerifyGetKey {
  let stamp: string | undefined;
  let keys: JWTVerifyGetKey | undefined;
  let problem: unknown;
  let checkedAt = Number.NEGATIVE_INFINITY;
  return async (header, token) => {
    const now = clock.monotonicMs();
    if (now - checkedAt >= POLL_INTERVAL_MS) {
      const newStamp = fileStamp(file);
      if (newStamp === undefined || newStamp !== stamp) {
        // Without the file it is unknown which keys were revoked, so no key is trusted until the file is valid again.
        keys = undefined;
        try {
          keys = readKeys(file);
        } catch (error) {
          problem = error;
        }
      }
      // A file that could not be read is read again, because a repair of its permissions does not change the stamp.
      stamp = keys === undefined ? undefined : newStamp;
      checkedAt = now;
    }
    if (keys === undefined) throw unavailable(problem);
    return await keys(header, token);
  };
}

/** Reads the keys of a file. @throws Error of the file system, the JSON parser or the library */
function readKeys(file: string): JWTVerifyGetKey {
  return createLocalJWKSet(JSON.parse(readFileSync(file, 'utf8')) as JSONWebKeySet);
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
    'The keys of the token issuer are unavailable; retry later.',
    {},
    { cause },
  );
}
