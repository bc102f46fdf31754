import { Code, ConnectError } from '@connectrpc/connect';
import type { User, UserManager } from 'oidc-client-ts';

/** The OIDC settings in /console.json. */
export interface OidcSignIn {
  readonly issuer: string;
  readonly audience: string;
  readonly client_id: string;
  readonly scope: string;
}

/** Path to which the issuer redirects; the query contains the authorization code. */
export const CALLBACK_PATH = '/signed-in';

/** OAuth errors that do not mean that the issuer refuses a renewal (RFC 6749, RFC 8628). */
const TEMPORARY = ['server_error', 'temporarily_unavailable', 'slow_down'];
const TIMEOUT_SECONDS = 10;

let manager: Promise<UserManager> | undefined;
let renewal: Promise<string | undefined> | undefined;

/** The client of the issuer: authorization code with PKCE, tokens in the session storage of the tab. */
export function oidcManager(settings: OidcSignIn): Promise<UserManager> {
  manager ??= createManager(settings).catch((error: unknown) => {
    // The next call loads the module again.
    manager = undefined;
    throw error;
  });
  return manager;
}

async function createManager(settings: OidcSignIn): Promise<UserManager> {
  const { UserManager, WebStorageStateStore } = await import('oidc-client-ts');
  return new UserManager({
    authority: settings.issuer,
    client_id: settings.client_id,
    scope: settings.scope,
    redirect_uri: `${location.origin}${CALLBACK_PATH}`,
    post_logout_redirect_uri: `${location.origin}/`,
    response_type: 'code',
    extraQueryParams: { audience: settings.audience },
    userStore: new WebStorageStateStore({ store: sessionStorage }),
    stateStore: new WebStorageStateStore({ store: sessionStorage }),
    automaticSilentRenew: false,
    loadUserInfo: false,
    requestTimeoutInSeconds: TIMEOUT_SECONDS,
  });
}

/** Removes the signed-in user, after a renewal in progress has ended. */
export async function forgetOidcUser(settings: OidcSignIn): Promise<void> {
  const oidc = await oidcManager(settings);
  await renewal?.catch(() => undefined);
  await oidc.removeUser();
}

/**
 * The access token of the signed-in user, renewed if it has expired; undefined if no usable token exists. Concurrent
 * calls share one renewal, because an issuer may accept a refresh token only once.
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

/** Renews an expired token. Removes the user if that is not possible, so that the console asks for a sign-in. */
async function renewed(
  oidc: UserManager,
  { refresh_token: refreshToken }: User,
): Promise<string | undefined> {
  try {
    if (refreshToken !== undefined) return await renewSilently(oidc);
  } catch (error) {
    if (!isRefusal(error)) {
      const message = 'The issuer did not renew the sign-in; retry.';
      throw new ConnectError(message, Code.Unavailable, undefined, undefined, error);
    }
  }
  await oidc.removeUser();
  return undefined;
}

async function renewSilently(oidc: UserManager): Promise<string | undefined> {
  // Without this option, the request has no timeout.
  const user = await oidc.signinSilent({ silentRequestTimeoutInSeconds: TIMEOUT_SECONDS });
  return user?.access_token;
}

/** Whether an issuer has answered with an OAuth error that another attempt would get as well. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'error' in error && !TEMPORARY.includes(String(error.error));
}
