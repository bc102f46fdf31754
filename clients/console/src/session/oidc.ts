import { Code, ConnectError } from '@connectrpc/connect';
import type { User, UserManager } from 'oidc-client-ts';

/** The OIDC settings in /console.json. */
export interface OidcSignIn {
  readonly issuer: string;
  readonly audience: string;
  readonly client_id: string;
  readonly scope: string;
}

/** Path to which the issuer returns; the callback has the code in its query. */
export const CALLBACK_PATH = '/signed-in';

/** Errors with which an issuer refuses a renewal (RFC 6749 section 5.2, OpenID Connect Core 1.0 section 3.1.2.6). */
const REFUSALS = [
  'invalid_grant',
  'invalid_client',
  'unauthorized_client',
  'access_denied',
  'login_required',
  'interaction_required',
  'consent_required',
];

let manager: Promise<UserManager> | undefined;
let renewal: Promise<string | undefined> | undefined;

/** The client of the issuer: authorization code with PKCE, tokens in the session storage of the tab. */
export function oidcManager(settings: OidcSignIn): Promise<UserManager> {
  manager ??= import('oidc-client-ts').then(
    (oidc) =>
      new oidc.UserManager({
        authority: settings.issuer,
        client_id: settings.client_id,
        scope: settings.scope,
        redirect_uri: `${location.origin}${CALLBACK_PATH}`,
        post_logout_redirect_uri: `${location.origin}/`,
        response_type: 'code',
        extraQueryParams: { audience: settings.audience },
        userStore: new oidc.WebStorageStateStore({ store: sessionStorage }),
        stateStore: new oidc.WebStorageStateStore({ store: sessionStorage }),
        automaticSilentRenew: false,
        loadUserInfo: false,
      }),
  );
  return manager;
}

/**
 * The access token of the signed-in person, renewed if it has expired; undefined if no usable token exists. Calls at the
 * same time share one renewal, because an issuer may accept a refresh token only once.
 * @throws ConnectError Unavailable if the issuer cannot be reached or fails
 */
export async function oidcToken(settings: OidcSignIn): Promise<string | undefined> {
  const oidc = await oidcManager(settings);
  const user = await oidc.getUser();
  if (user === null) return undefined;
  if (user.expired !== true) return user.access_token;
  renewal ??= renewed(oidc, user).finally(() => {
    renewal = undefined;
  });
  return await renewal;
}

/** Renews an expired token. If that is not possible, forgets the person, so that the console asks for a sign-in. */
async function renewed(
  oidc: UserManager,
  { refresh_token: refreshToken }: User,
): Promise<string | undefined> {
  try {
    if (refreshToken !== undefined) return (await oidc.signinSilent())?.access_token;
  } catch (error) {
    if (!isRefusal(error)) {
      const message = 'The issuer did not renew the sign-in. The console tries again.';
      throw new ConnectError(message, Code.Unavailable, undefined, undefined, error);
    }
  }
  await oidc.removeUser();
  return undefined;
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'error' in error && REFUSALS.includes(String(error.error));
}
