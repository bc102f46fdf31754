/**
 * Key of the session storage item that contains the API key. The browser deletes the session storage when the tab is
 * closed. API keys are never written to URLs, cookies or logs. oidc-client-ts keeps the tokens of an OIDC issuer in the
 * same storage.
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
