import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { newId } from '@writ/kernel';
import { type Route, route } from '@writ/rpc';

type Fields = Readonly<Record<string, unknown>>;

/** What a token says; whatever is given replaces what a good one would say. */
export interface TokenOptions {
  /** Name of the private claim; the header's `typ` is made from it. */
  readonly kind: string;
  readonly audience: string;
  readonly subject: string;
  readonly claims: Fields;
  /** From now; zero or below is already over. */
  readonly ttlMs: number;
  readonly id?: string;
  /** Replace registered claims, and fields of the header. */
  readonly payload?: Fields;
  readonly header?: Fields;
  /** Signs in the name of the issuer; its own key by default. */
  readonly signedBy?: Issuer;
}

/**
 * A service that the gateway under test is told to trust: one key, the tokens it signs and the
 * KeyService that vouches for it. Tokens are put together by hand, so that bad ones can be, too.
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

  /** The token that proves this service to `audience`, for as long as a verification lasts. */
  serviceToken(audience: string, tenants: readonly string[] = []): string {
    return this.token({
      kind: 'service',
      audience,
      subject: this.name,
      claims: { name: this.name, replica: 'verify-1', tenants },
      ttlMs: 10 * 60_000,
    });
  }

  /** GetKeys, with the one key. */
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
