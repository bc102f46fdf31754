/**
 * The name of the API key in the session storage of the tab, which the browser deletes with the tab. An API key is
 * never in an address, a cookie or a log. oidc-client-ts keeps the tokens of an OIDC issuer in the same storage.
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
