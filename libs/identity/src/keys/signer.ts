import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { create, toJson } from '@bufbuild/protobuf';
import {
  assertId,
  type Clock,
  InvalidRequestError,
  isWritError,
  newId,
  type WritError,
} from '@writ/kernel';
import { compactVerify } from 'jose';
import type { ServiceName } from '../services/names.ts';
import {
  CLAIM_SCHEMAS,
  type ClaimsInit,
  KIND_RULES,
  type TokenKind,
} from '../tokens/token-kinds.ts';
import { privateKey, publicKey, signCompact } from './ed25519.ts';
import {
  newKey,
  openKeyFile,
  readKeyFile,
  type StoredKey,
  type StoredKeys,
  writeKeyFile,
} from './key-file.ts';
import { badFile, fileStamp, whileLocked } from './private-file.ts';

/** Options of {@link Signer.sign}. */
export interface SignOptions<K extends TokenKind> {
  /** The service that the token is for; others reject it. */
  readonly audience: string;
  readonly claims: ClaimsInit<K>;
  /** Lifetime of the token, ms. With zero or a negative value, the signed token has already expired. */
  readonly ttlMs: number;
  /** The `jti`. Default: generated. */
  readonly id?: string;
}

/** A signed token. */
export interface SignedToken {
  /** The compact JWS. Secret until it expires: never log it. */
  readonly token: string;
  /** Its `jti`, safe to log. */
  readonly id: string;
  readonly expireTime: Date;
}

/** A public key of a service. */
export interface PublicKey {
  readonly keyId: string;
  readonly jwk: { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string };
  readonly notBefore: Date;
  /** Expiry time of the key; absent for the signing key. */
  readonly notAfter?: Date;
}

/** The signing key of a service. */
export interface Signer {
  readonly service: ServiceName;
  readonly clock: Clock;
  /** Id of the signing key. */
  readonly keyId: string;
  /**
   * Signs a token of `kind`.
   * @throws InvalidRequestError INVALID_CLAIMS or INVALID_ID naming the field, TOKEN_TOO_LARGE naming the limit
   */
  sign<K extends TokenKind>(kind: K, options: SignOptions<K>): Promise<SignedToken>;
  /** Returns the public keys: the signing key first, then the retired keys. */
  publicKeys(): readonly PublicKey[];
  /**
   * Creates a new signing key and stores it durably before signing with it. Deletes the private part of the old key.
   * Tokens signed with the old key stay valid for `oldKeyValidForMs` (default: {@link LONGEST_TTL_MS}).
   * @throws ConflictError FILE_LOCKED; InvalidRequestError INVALID_FILE
   */
  rotate(options?: { readonly oldKeyValidForMs?: number }): Promise<void>;
  /**
   * Expires a key now, for example because it was leaked: tokens signed with it become invalid. If it is the signing
   * key, a new one replaces it. Returns false if the service has no key `keyId`.
   * @throws ConflictError FILE_LOCKED; InvalidRequestError INVALID_FILE
   */
  revoke(keyId: string): Promise<boolean>;
  /**
   * Reloads the key file if its metadata shows that another process has changed it.
   * @param maxAgeMs the metadata is not read again if it was read within this time, ms; default 0
   */
  refresh(maxAgeMs?: number): Promise<void>;
}

/** Options of {@link openSigner}. */
export interface SignerOptions {
  readonly service: ServiceName;
  /** Folder of the file `<service>.jwks.json`. */
  readonly keyDir: string;
  readonly clock: Clock;
  /**
   * Maximum age of the signing key, ms. A call of {@link Signer.sign} rotates an older key before it signs. Tokens of
   * the old key stay valid until they expire. Default: keys are rotated only by {@link Signer.rotate}.
   */
  readonly rotateEveryMs?: number | undefined;
  /**
   * Called when the running service cannot rotate its key, or cannot read its changed key file (once for each version
   * of the file). The service continues to sign with its current key.
   */
  readonly onKeyProblem?: ((error: WritError) => void) | undefined;
}

/**
 * The longest lifetime of all tokens except checkpoints, ms: 30 days, the lifetime of a receipt. By default, a rotated
 * key stays valid for this time.
 */
export const LONGEST_TTL_MS = 30 * 24 * 60 * 60 * 1000;
/** Minimum interval between checks for a changed key file, ms, by {@link Signer.sign} and by verifiers. */
export const POLL_INTERVAL_MS = 1_000;
/** Maximum attempts to acquire the lock when {@link Signer.sign} waits for the rotation. */
const LOCK_ATTEMPTS_WHEN_DUE = 20;
/** Delay before a failed rotation is retried, ms. */
const ROTATION_RETRY_MS = 60_000;

/**
 * Opens a service's signing key, `<keyDir>/<service>.jwks.json` (mode 0600): a JSON Web Key Set,
 * the signing key first. The first start creates it; the replicas of a service share it.
 * @throws InvalidRequestError INVALID_FILE naming the file and the remedy; the file is never recreated
 */
export async function openSigner(options: SignerOptions): Promise<Signer> {
  const file = join(options.keyDir, `${options.service}.jwks.json`);
  const signer = new FileSigner(file, options);
  await signer.load(() => openKeyFile(file, options.clock.now()));
  return signer;
}

interface Loaded {
  readonly stored: StoredKeys;
  readonly signing: KeyObject;
  readonly stamp: string | undefined;
}

class FileSigner implements Signer {
  readonly service: ServiceName;
  readonly clock: Clock;
  readonly #file: string;
  readonly #rotateEveryMs: number | undefined;
  #loaded: Loaded | undefined;
  /** Time of the last check for changes of the key file, by the monotonic clock, ms. */
  #checkedAt = Number.NEGATIVE_INFINITY;
  #rotating: Promise<void> | undefined;
  /** Time of the next rotation attempt after a failure, by the monotonic clock, ms. */
  #notBefore = Number.NEGATIVE_INFINITY;
  readonly #onKeyProblem: SignerOptions['onKeyProblem'];
  /** The version of the key file that was last reported as unreadable. */
  #reported: string | undefined;

  constructor(file: string, { service, clock, rotateEveryMs, onKeyProblem }: SignerOptions) {
    this.service = service;
    this.#file = file;
    this.clock = clock;
    this.#rotateEveryMs = rotateEveryMs;
    this.#onKeyProblem = onKeyProblem;
  }

  async sign<K extends TokenKind>(kind: K, options: SignOptions<K>): Promise<SignedToken> {
    await this.refresh(POLL_INTERVAL_MS);
    await this.#rotateWhenDue();
    const { stored, signing } = this.#keys();
    const rules = KIND_RULES[kind];
    const claims = create(CLAIM_SCHEMAS[kind], options.claims);
    const field = rules.badField(claims);
    if (field !== undefined)
      throw new InvalidRequestError(
        'INVALID_CLAIMS',
        `A ${kind} token cannot be signed: its ${field} is missing or malformed.`,
        { field },
      );
    const id = assertId(options.id ?? newId('tok'), 'id');
    const now = this.clock.now().getTime();
    const expireTime = new Date(now + options.ttlMs);
    const payload = {
      iss: this.service,
      aud: options.audience,
      sub: rules.subject(claims),
      iat: now / 1000,
      exp: expireTime.getTime() / 1000,
      jti: id,
      [kind]: toJson(CLAIM_SCHEMAS[kind], claims, { useProtoFieldName: true }),
    };
    const header = { alg: 'EdDSA', typ: rules.typ, kid: stored[0].keyId };
    const token = signCompact(header, payload, signing);
    if (token.length > rules.maxLength)
      throw new InvalidRequestError(
        'TOKEN_TOO_LARGE',
        `The ${kind} token has ${token.length} characters; the limit is ${rules.maxLength}. Shorten its lists.`,
        { limit: String(rules.maxLength) },
      );
    return { token, id, expireTime };
  }

  get keyId(): string {
    return this.#keys().stored[0].keyId;
  }

  publicKeys(): readonly PublicKey[] {
    return this.#keys().stored.map(({ keyId, x, notBefore, notAfter }) => ({
      keyId,
      jwk: { kty: 'OKP', crv: 'Ed25519', x },
      notBefore,
      ...(notAfter === undefined ? {} : { notAfter }),
    }));
  }

  async rotate(options: { readonly oldKeyValidForMs?: number } = {}): Promise<void> {
    await this.#rotate(options.oldKeyValidForMs ?? LONGEST_TTL_MS, false);
  }

  async revoke(keyId: string): Promise<boolean> {
    return await whileLocked(this.#file, async () => {
      const now = this.clock.now();
      const stored = await readKeyFile(this.#file);
      if (!stored.some((key) => key.keyId === keyId)) return false;
      const [{ d, ...signing }, ...retired] = stored;
      const expire = (key: StoredKey): StoredKey => {
        const isRevoked = key.keyId === keyId && (key.notAfter === undefined || key.notAfter > now);
        return isRevoked ? { ...key, notAfter: now } : key;
      };
      const keys: StoredKeys =
        signing.keyId === keyId
          ? [await newKey(now), expire(signing), ...retired]
          : [{ ...signing, d }, ...retired.map(expire)];
      writeKeyFile(this.#file, keys);
      await this.load(() => readKeyFile(this.#file));
      return true;
    });
  }

  #isDue([{ notBefore }]: StoredKeys): boolean {
    if (this.#rotateEveryMs === undefined) return false;
    return this.clock.now().getTime() - notBefore.getTime() >= this.#rotateEveryMs;
  }

  /** Rotates the signing key if it has reached its maximum age. Concurrent calls of `sign` share one rotation. */
  async #rotateWhenDue(): Promise<void> {
    const now = this.clock.monotonicMs();
    if (!this.#isDue(this.#keys().stored) || now < this.#notBefore) return;
    this.#rotating ??= this.#rotate(LONGEST_TTL_MS, true)
      .catch((error: unknown) => {
        // The old key is still valid, and the stale lock of a killed process must not block signing.
        if (!isWritError(error)) throw error;
        this.#notBefore = now + ROTATION_RETRY_MS;
        this.#onKeyProblem?.(error);
      })
      .finally(() => {
        this.#rotating = undefined;
      });
    await this.#rotating;
  }

  async #rotate(oldKeyValidForMs: number, ifDue: boolean): Promise<void> {
    await whileLocked(
      this.#file,
      async () => {
        const now = this.clock.now();
        const notAfter = new Date(now.getTime() + oldKeyValidForMs);
        const stored = await readKeyFile(this.#file);
        // Another process or another call has already rotated the key.
        if (ifDue && !this.#isDue(stored)) return await this.load(async () => stored);
        const [{ keyId, x, notBefore }, ...retired] = stored;
        const old = { keyId, x, notBefore, notAfter };
        const keys: StoredKeys = [await newKey(now), old, ...retired];
        writeKeyFile(this.#file, keys);
        await this.load(() => readKeyFile(this.#file));
      },
      ifDue ? LOCK_ATTEMPTS_WHEN_DUE : undefined,
    );
  }

  async refresh(maxAgeMs = 0): Promise<void> {
    const now = this.clock.monotonicMs();
    if (now - this.#checkedAt < maxAgeMs) return;
    this.#checkedAt = now;
    const stamp = fileStamp(this.#file);
    if (stamp !== undefined && stamp === this.#keys().stamp) {
      this.#reported = undefined;
      return;
    }
    try {
      await this.load(() => readKeyFile(this.#file));
      this.#reported = undefined;
    } catch (error) {
      // A running service keeps its keys; its next start fails.
      if (!isWritError(error)) throw error;
      const version = stamp ?? 'missing';
      if (version !== this.#reported) this.#onKeyProblem?.(error);
      this.#reported = version;
    }
  }

  async load(read: () => Promise<StoredKeys>): Promise<void> {
    const before = fileStamp(this.#file);
    const stored = await read();
    const [{ x, d }] = stored;
    const signing = await matchingKey(this.#file, x, d);
    // If the file changed while it was loaded, an undefined stamp makes the next refresh reload it.
    const after = fileStamp(this.#file);
    this.#loaded = { stored, signing, stamp: before === after ? after : undefined };
  }

  #keys(): Loaded {
    if (this.#loaded !== undefined) return this.#loaded;
    throw badFile(this.#file, 'was not loaded');
  }
}

/** Returns the private key after checking that it matches the public key. */
async function matchingKey(file: string, x: string, d: string): Promise<KeyObject> {
  try {
    const signing = privateKey(x, d);
    const probe = signCompact({ alg: 'EdDSA' }, {}, signing);
    await compactVerify(probe, publicKey(x), { algorithms: ['EdDSA'] });
    return signing;
  } catch (error) {
    throw badFile(
      file,
      'contains a private key that does not match its public key; restore it from a backup, or delete it to start with a new key',
      error,
    );
  }
}
