import type { WebRequest } from '@writ/rpc';

/** The credential of a request: a bearer token. */
export function credentialOf({ headers }: WebRequest): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
}
