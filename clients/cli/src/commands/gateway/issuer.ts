import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { newId } from '@writ/kernel';
import { type Route, route } from '@writ/rpc';

type Fields = Readonly<Record<string, unknown>>;

/** Contents of a token. */
export interface TokenOptions {
  /** Name of the private claim, from which `typ` is derived. */
  readonly kind: string;
  readonly audience: string;
  readonly subject: string;
  readonly claims: Fields;
  /** Lifetime from now; with zero or less the token is already expired. */
  readonly ttlMs: number;
  readonly id?: string;
  /** Claims that replace or extend the default claims; `header` does the same for the fields of the header. */
  readonly payload?: Fields;
  readonly header?: Fields;
  /** Issuer whose key signs; default: this issuer. */
  readonly signedBy?: Issuer;
}

/**
 * A simulated service with one key: it signs tokens and serves KeyService. It does
 * not use libs/identity, because it must also create invalid tokens.
 */
export class Issuer {
  readonly name: string;
  readonly keyId: string;
  readonly #privateKey: KeyObject;
  readonly #x: string;
  readonly #since = new Date();

  constructor(name: string) {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const { x = '' } = publicKey.export({ format: 'jwk' });
    this.name = name;
    this.#privateKey = privateKey;
    this.#x = x;
    // RFC 7638.
    this.keyId = createHash('sha256')
      .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
      .digest('base64url');
  }

  /** A compact JWS. */
  token(options: TokenOptions): string {
    const { kind, audience, subject, claims, ttlMs, id = newId('tok') } = options;
    const now = Date.now() / 1000;
    const header = {
      alg: 'EdDSA',
      typ: `${kind.replaceAll('_', '-')}+jwt`,
      kid: this.keyId,
      ...options.header,
    };
    const payload = {
      iss: this.name,
      aud: audience,
      sub: subject,
      iat: now,
      exp: now + ttlMs / 1000,
      jti: id,
      [kind]: claims,
      ...options.payload,
    };
    const signed = `${encode(header)}.${encode(payload)}`;
    return `${signed}.${(options.signedBy ?? this).#sign(signed)}`;
  }

  /** A service token for `audience`, valid for ten minutes. */
  serviceToken(audience: string, tenants: readonly string[] = []): string {
    return this.token({
      kind: 'service',
      audience,
      subject: this.name,
      claims: { name: this.name, replica: 'verify-1', tenants },
      ttlMs: 10 * 60_000,
    });
  }

  /** KeyService with the key. */
  route(): Route {
    const jwkJson = JSON.stringify({ kty: 'OKP', crv: 'Ed25519', x: this.#x });
    const key = { keyId: this.keyId, jwkJson, notBefore: timestampFromDate(this.#since) };
    return route(KeyService, {
      getKeys: async ({ keyId }) => ({
        service: this.name,
        keys: keyId === '' || keyId === this.keyId ? [key] : [],
      }),
    });
  }

  #sign(text: string): string {
    return sign(null, Buffer.from(text), this.#privateKey).toString('base64url');
  }
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
