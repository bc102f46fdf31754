import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { create, toJson } from '@bufbuild/protobuf';
import { assertId, type Clock, InvalidRequestError, isWritError, newId } from '@writ/kernel';
import { compactVerify } from 'jose';
import { privateKey, publicKey, signCompact } from './ed25519.ts';
import { newKey, openKeyFile, readKeyFile, type StoredKeys, writeKeyFile } from './key-file.ts';
import type { ServiceName } from './names.ts';
import { badFile, fileStamp, whileLocked } from './private-file.ts';
import { CLAIM_SCHEMAS, type ClaimsInit, KIND_RULES, type TokenKind } from './token-kinds.ts';

/** What {@link Signer.sign} needs. */
export interface SignOptions<K extends TokenKind> {
  /** Who the token is for; verifiers take no other. */
  readonly audience: string;
  readonly claims: ClaimsInit<K>;
  /** Life of the token, in milliseconds; zero or below is already over. */
  readonly ttlMs: number;
  /** The `jti`; fresh unless given. */
  readonly id?: string;
}

/** A token and what its reader will find of it. */
export interface SignedToken {
  /** The compact JWS. Secret until it expires: never log it. */
  readonly token: string;
  /** Its `jti`, safe to log. */
  readonly id: string;
  readonly expireTime: Date;
}

/** A public key that a service vouches for. */
export interface PublicKey {
  readonly keyId: string;
  readonly jwk: { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string };
  readonly notBefore: Date;
  /** Until when signatures count; absent while the key signs. */
  readonly notAfter?: Date;
}

/** One service's signing key. */
export interface Signer {
  readonly service: ServiceName;
  readonly clock: Clock;
  /**
   * Signs a token of `kind`.
   * @throws InvalidRequestError INVALID_CLAIMS naming the field, TOKEN_TOO_LARGE naming the limit
   */
  sign<K extends TokenKind>(kind: K, options: SignOptions<K>): Promise<SignedToken>;
  /** The signing key first, then the retired ones. */
  publicKeys(): readonly PublicKey[];
  /**
   * Makes a new signing key, durably, before signing with it. The old private part is deleted;
   * signatures with it count for `vouchForMs` more (default: the longest life of a token).
   */
  rotate(options?: { readonly vouchForMs?: number }): Promise<void>;
  /** Reads the key file again when another process changed it. */
  refresh(): Promise<void>;
}

/** What {@link openSigner} needs. */
export interface SignerOptions {
  readonly service: ServiceName;
  /** Folder of the file `<service>.jwks.json`. */
  readonly keyDir: string;
  readonly clock: Clock;
  /**
   * A key that is this old signs no more: whoever signs next makes a new one, and what the old one
   * signed counts until it expires. Left out = keys are rotated by {@link Signer.rotate} alone.
   */
  readonly rotateEveryMs?: number | undefined;
}

/** The longest life of a token that anybody has to read: a receipt's, 30 days. */
export const LONGEST_TTL_MS = 30 * 24 * 60 * 60 * 1000;
/** How often the key file is looked at for a rotation by another process. */
const LOOK_EVERY_MS = 1_000;
/** A signature waits no longer than this many looks at the lock for a rotation that is due. */
const TRIES_WHEN_DUE = 20;
/** How long a due rotation that failed is let be. */
const ROTATE_AGAIN_MS = 60_000;

/**
 * Opens a service's signing key, `<keyDir>/<service>.jwks.json` (mode 0600): a JSON Web Key Set,
 * the signing key first. The first start makes it; replicas of a service share it.
 * @throws InvalidRequestError INVALID_FILE naming the file and what to do; never silently made anew
 */
export async function openSigner(options: SignerOptions): Promise<Signer> {
  const { service, keyDir, clock, rotateEveryMs } = options;
  const file = join(keyDir, `${service}.jwks.json`);
  const signer = new FileSigner(service, file, clock, rotateEveryMs);
  await signer.load(() => openKeyFile(file, clock.now()));
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
  #lookedAt = 0;
  #rotating: Promise<void> | undefined;
  /** When a rotation that failed is tried again. */
  #notBefore = 0;

  constructor(service: ServiceName, file: string, clock: Clock, rotateEveryMs: number | undefined) {
    this.service = service;
    this.#file = file;
    this.clock = clock;
    this.#rotateEveryMs = rotateEveryMs;
  }

  async sign<K extends TokenKind>(kind: K, options: SignOptions<K>): Promise<SignedToken> {
    await this.refresh();
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
        `A ${kind} token may have ${rules.maxLength} characters, this one has ${token.length}: its lists are too long.`,
        { limit: String(rules.maxLength) },
      );
    return { token, id, expireTime };
  }

  publicKeys(): readonly PublicKey[] {
    return this.#keys().stored.map(({ keyId, x, notBefore, notAfter }) => ({
      keyId,
      jwk: { kty: 'OKP', crv: 'Ed25519', x },
      notBefore,
      ...(notAfter === undefined ? {} : { notAfter }),
    }));
  }

  async rotate(options: { readonly vouchForMs?: number } = {}): Promise<void> {
    await this.#rotate(options.vouchForMs ?? LONGEST_TTL_MS, false);
  }

  #isDue([{ notBefore }]: StoredKeys): boolean {
    if (this.#rotateEveryMs === undefined) return false;
    return this.clock.now().getTime() - notBefore.getTime() >= this.#rotateEveryMs;
  }

  /** Whoever signs meanwhile waits, and nobody waits twice. */
  async #rotateWhenDue(): Promise<void> {
    const now = this.clock.now().getTime();
    if (!this.#isDue(this.#keys().stored) || now < this.#notBefore) return;
    this.#rotating ??= this.#rotate(LONGEST_TTL_MS, true)
      .catch((error: unknown) => {
        // The old key still counts, and a lock that a killed process left must not stop everybody.
        if (!isWritError(error)) throw error;
        this.#notBefore = now + ROTATE_AGAIN_MS;
      })
      .finally(() => {
        this.#rotating = undefined;
      });
    await this.#rotating;
  }

  async #rotate(vouchForMs: number, ifDue: boolean): Promise<void> {
    await whileLocked(
      this.#file,
      async () => {
        const now = this.clock.now();
        const notAfter = new Date(now.getTime() + vouchForMs);
        const stored = await readKeyFile(this.#file);
        // Another process, or another signature of this one, was faster.
        if (ifDue && !this.#isDue(stored)) return await this.load(async () => stored);
        const [{ keyId, x, notBefore }, ...retired] = stored;
        const old = { keyId, x, notBefore, notAfter };
        const keys: StoredKeys = [await newKey(now), old, ...retired];
        writeKeyFile(this.#file, keys);
        await this.load(() => readKeyFile(this.#file));
      },
      ifDue ? TRIES_WHEN_DUE : undefined,
    );
  }

  async refresh(): Promise<void> {
    const now = this.clock.now().getTime();
    if (Math.abs(now - this.#lookedAt) < LOOK_EVERY_MS) return;
    this.#lookedAt = now;
    if (fileStamp(this.#file) === this.#keys().stamp) return;
    try {
      await this.load(() => readKeyFile(this.#file));
    } catch (error) {
      // A running service goes on with the keys that it has; its next start names the damage.
      if (!isWritError(error)) throw error;
    }
  }

  async load(read: () => Promise<StoredKeys>): Promise<void> {
    const before = fileStamp(this.#file);
    const stored = await read();
    const [{ x, d }] = stored;
    const signing = await matchingKey(this.#file, x, d);
    // Made or changed meanwhile: an unknown stamp makes the next look read it again.
    const after = fileStamp(this.#file);
    this.#loaded = { stored, signing, stamp: before === after ? after : undefined };
  }

  #keys(): Loaded {
    if (this.#loaded !== undefined) return this.#loaded;
    throw badFile(this.#file, 'was not loaded');
  }
}

/** The private key, once it has proved that it belongs to the public one. */
async function matchingKey(file: string, x: string, d: string): Promise<KeyObject> {
  try {
    const signing = privateKey(x, d);
    const probe = signCompact({ alg: 'EdDSA' }, {}, signing);
    await compactVerify(probe, publicKey(x), { algorithms: ['EdDSA'] });
    return signing;
  } catch (error) {
    throw badFile(
      file,
      'holds a private key that does not fit its public one; restore it from a backup, or delete it to start with a new key',
      error,
    );
  }
}
