/**
 * The credential of the signed-in person. An API key is kept in the session storage of the tab, which ends with it: never in an
 * address, a cookie or a log. Tokens of an OIDC issuer are kept there by oidc-client-ts.
 */
const API_KEY = 'writ.api-key';

/** Returns the stored API key. */
export function storedApiKey(): string | undefined {
  return sessionStorage.getItem(API_KEY) ?? undefined;
}

/** Stores an API key for this tab; undefined removes it. */
export function storeApiKey(key: string | undefined): void {
  if (key === undefined) sessionStorage.removeItem(API_KEY);
  else sessionStorage.setItem(API_KEY, key);
}
