import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** Id of the client that is registered at the issuer. */
export const CLIENT_ID = 'writ-console';
export const AUDIENCE = 'writ';

/** An OpenID Connect issuer on loopback: authorization code flow with PKCE for a public client, and a sign-in page. */
export class OidcIssuer {
  /** The `expires_in` of the token response, s; the tokens themselves are valid for 300 s. */
  tokenSeconds = 300;
  /** How the issuer answers requests to renew a token. */
  renewal: 'accept' | 'fail' | 'refuse' = 'accept';
  readonly #keys = generateKeyPairSync('ed25519');
  /** The refresh tokens that were not used; each can be used once. */
  readonly #refreshTokens = new Set<string>();
  /** The challenge and the redirect URI of each code that was not redeemed. */
  readonly #codes = new Map<string, { readonly challenge: string; readonly redirectUri: string }>();
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch(() => response.writeHead(500).end());
  });

  static async start(): Promise<OidcIssuer> {
    const issuer = new OidcIssuer();
    await new Promise<void>((resolve) => issuer.#server.listen(0, '127.0.0.1', resolve));
    return issuer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', this.url);
    response.setHeader('access-control-allow-origin', '*');
    if (pathname === '/.well-known/openid-configuration') return json(response, this.#discovery());
    if (pathname === '/jwks') return json(response, { keys: [this.#jwk()] });
    if (pathname === '/authorize') return this.#showSignIn(searchParams, response);
    if (pathname === '/token') {
      return this.#redeem(new URLSearchParams(await text(request)), response);
    }
    response.writeHead(404).end();
  }

  #discovery(): object {
    return {
      issuer: this.url,
      authorization_endpoint: `${this.url}/authorize`,
      token_endpoint: `${this.url}/token`,
      jwks_uri: `${this.url}/jwks`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['EdDSA'],
    };
  }

  /** Responds with a page that has one link, like an issuer at which the person is already signed in. */
  #showSignIn(query: URLSearchParams, response: ServerResponse): void {
    const redirectUri = query.get('redirect_uri') ?? '';
    const isValid =
      query.get('client_id') === CLIENT_ID &&
      query.get('response_type') === 'code' &&
      query.get('code_challenge_method') === 'S256' &&
      query.get('audience') === AUDIENCE;
    if (!isValid) {
      response.writeHead(400).end();
      return;
    }
    const code = randomUUID();
    this.#codes.set(code, { challenge: query.get('code_challenge') ?? '', redirectUri });
    const back = new URL(redirectUri);
    back.searchParams.set('code', code);
    back.searchParams.set('state', query.get('state') ?? '');
    response.setHeader('content-type', 'text/html');
    response.end(`<a href="${back.href.replaceAll('&', '&amp;')}">Continue as ada</a>`);
  }

  #redeem(form: URLSearchParams, response: ServerResponse): void {
    if (form.get('grant_type') === 'refresh_token') {
      this.#renew(form.get('refresh_token') ?? '', response);
      return;
    }
    const code = form.get('code') ?? '';
    const known = this.#codes.get(code);
    this.#codes.delete(code);
    const challenge = createHash('sha256').update(form.get('code_verifier') ?? '');
    if (
      known === undefined ||
      known.challenge !== challenge.digest('base64url') ||
      known.redirectUri !== form.get('redirect_uri')
    ) {
      response.writeHead(400);
      json(response, { error: 'invalid_grant' });
      return;
    }
    json(response, { ...this.#tokens(), id_token: this.#token({ aud: CLIENT_ID }) });
  }

  #renew(refreshToken: string, response: ServerResponse): void {
    if (this.renewal === 'accept' && this.#refreshTokens.delete(refreshToken)) {
      json(response, this.#tokens());
      return;
    }
    response.writeHead(this.renewal === 'fail' ? 503 : 400, { 'content-type': 'application/json' });
    response.end(this.renewal === 'fail' ? '' : JSON.stringify({ error: 'invalid_grant' }));
  }

  #tokens(): object {
    const refreshToken = randomUUID();
    this.#refreshTokens.add(refreshToken);
    return {
      token_type: 'Bearer',
      expires_in: this.tokenSeconds,
      access_token: this.#token({ aud: AUDIENCE, tenant: 'default', roles: ['auditor'] }),
      refresh_token: refreshToken,
    };
  }

  #jwk(): object {
    return { ...this.#keys.publicKey.export({ format: 'jwk' }), kid: 'key-1', alg: 'EdDSA' };
  }

  #token(claims: object): string {
    const now = Math.floor(Date.now() / 1_000);
    const times = { iat: now, exp: now + 300 };
    const signed = `${encoded({ alg: 'EdDSA', kid: 'key-1' })}.${encoded({ iss: this.url, sub: 'ada', ...times, ...claims })}`;
    return `${signed}.${signature(signed, this.#keys.privateKey)}`;
  }
}

function json(response: ServerResponse, value: object): void {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(value));
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

function signature(signed: string, key: KeyObject): string {
  return sign(null, Buffer.from(signed), key).toString('base64url');
}
