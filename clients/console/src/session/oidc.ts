import type { UserManager } from 'oidc-client-ts';

/** The OIDC settings in /console.json. */
export interface OidcSignIn {
  readonly issuer: string;
  readonly audience: string;
  readonly client_id: string;
  readonly scope: string;
}

/** Path to which the issuer returns; the callback has the code in its query. */
export const CALLBACK_PATH = '/signed-in';

let manager: Promise<UserManager> | undefined;

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

/** The access token of the signed-in person, renewed if it has expired; undefined if no usable token exists. */
export async function oidcToken(settings: OidcSignIn): Promise<string | undefined> {
  const oidc = await oidcManager(settings);
  const user = await oidc.getUser();
  if (user === null) return undefined;
  if (user.expired !== true) return user.access_token;
  if (user.refresh_token === undefined) return undefined;
  return (await oidc.signinSilent())?.access_token;
}
