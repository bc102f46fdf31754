import { SERVICE_NAMES, type ServerName, TOOL_PROVIDER } from './names.ts';

/** Returns the SPIFFE ID of a service: `spiffe://<trust domain>/writ/<service>`. */
export function spiffeId(trustDomain: string, service: ServerName): string {
  return `spiffe://${trustDomain}/writ/${service}`;
}

/** The parts of a {@link spiffeId}. */
export interface SpiffeName {
  readonly trustDomain: string;
  readonly service: ServerName;
}

const TRUST_DOMAIN = /^[a-z0-9._-]{1,255}$/;
const SPIFFE_ID = /^spiffe:\/\/([^/]+)\/writ\/([a-z-]+)$/;

/** Whether `text` is a valid trust domain. */
export function isTrustDomain(text: string): boolean {
  return TRUST_DOMAIN.test(text);
}

/** Parses the URIs of a certificate; undefined unless the only one is the SPIFFE ID of a service. */
export function readSpiffeId(uris: readonly string[]): SpiffeName | undefined {
  const [uri = '', ...others] = uris;
  const [, trustDomain = '', name] = SPIFFE_ID.exec(uri) ?? [];
  const service = ([...SERVICE_NAMES, TOOL_PROVIDER] as const).find((known) => known === name);
  if (others.length > 0 || service === undefined || !isTrustDomain(trustDomain)) return undefined;
  return { trustDomain, service };
}
