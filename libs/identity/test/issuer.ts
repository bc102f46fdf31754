import { createServer, type Server } from 'node:http';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import type { OidcAlgorithm } from '../src/people/oidc/oidc-settings.ts';

/** An OpenID Connect issuer on loopback that serves its key set over HTTP and signs tokens. */
export class Issuer {
  readonly name = 'https://issuer.example';
  /** Number of requests for the key set. */
  requests = 0;
  isDown = false;
  isGarbled = false;
  readonly #server: Server;
  readonly #keys = new Map<string, { readonly key: CryptoKey; readonly alg: OidcAlgorithm }>();
  #jwks: { keys: object[] } = { keys: [] };

  private constructor() {
    this.#server = createServer((_, response) => {
      this.requests += 1;
      if (this.isDown) response.writeHead(503).end();
      else response.end(this.isGarbled ? '<html>' : JSON.stringify(this.#jwks));
    });
  }

  static async start(): Promise<Issuer> {
    const issuer = new Issuer();
    await new Promise<void>((done) => issuer.#server.listen(0, '127.0.0.1', done));
    await issuer.addKey('key-1', 'ES256');
    return issuer;
  }

  /** The URL of the key set. */
  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('The issuer is closed.');
    return `http://127.0.0.1:${address.port}/jwks`;
  }

  get jwks(): string {
    return JSON.stringify(this.#jwks);
  }

  /** Publishes an additional key. */
  async addKey(kid: string, alg: OidcAlgorithm): Promise<void> {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    this.#keys.set(kid, { key: privateKey, alg });
    const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' };
    this.#jwks = { keys: [...this.#jwks.keys, jwk] };
  }

  /** Signs a token with `claims`, which override the default issuer and times. */
  async sign(
    claims: Readonly<Record<string, unknown>>,
    { kid = 'key-1', expiresInS = 60, at = new Date() } = {},
  ): Promise<string> {
    const known = this.#keys.get(kid);
    if (known === undefined) throw new Error(`Key ${kid} does not exist.`);
    const now = Math.floor(at.getTime() / 1_000);
    return await new SignJWT({ iss: this.name, iat: now, exp: now + expiresInS, ...claims })
      .setProtectedHeader({ alg: known.alg, kid })
      .sign(known.key);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}

/** An unsigned token. */
export function unsigned(claims: JWTPayload): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part(claims)}.`;
}
