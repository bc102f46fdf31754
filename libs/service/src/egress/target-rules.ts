import { type AddressRule, refusedAddress } from './address-rules.ts';
import { parseIpAddress } from './ip-address.ts';

/** Destinations that the configuration allows in addition to the public internet. */
export interface EgressAllowance {
  /**
   * `host:port`, lower case, an IPv6 host in brackets. Any address of such a host is allowed, so its DNS is trusted.
   */
  readonly hosts: readonly string[];
  /** Ports in addition to 80 and 443 on hosts of the public internet. */
  readonly ports: readonly number[];
}

/** Reason why a request is rejected. */
export type EgressRule =
  | AddressRule
  | 'not_a_url'
  | 'scheme'
  | 'credentials'
  | 'disguised'
  | 'local_name'
  | 'port'
  | 'unresolved'
  | 'redirects'
  | 'downgrade';

/** A rejection by the egress guard: the rule, and a sentence for the model. */
export class EgressRefusal extends Error {
  override readonly name = 'EgressRefusal';
  readonly rule: EgressRule;

  constructor(rule: EgressRule, message: string) {
    super(message);
    this.rule = rule;
  }
}

/** A destination whose URL passed the checks; its addresses are checked after resolution. */
export interface EgressTarget {
  readonly url: URL;
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  /** Whether the configuration allows the destination with any address. */
  readonly allowed: boolean;
}

const MAX_URL_LENGTH = 4_096;
const OPEN_PORTS: readonly number[] = [80, 443];
/** Host names of private networks. A name without a dot is also treated as local. */
const LOCAL_NAMES =
  /(^|\.)(localhost|localdomain|local|internal|intranet|lan|home|corp|private|home\.arpa|onion|test|invalid|example)$/;
const AUTHORITY = /^(?<scheme>[a-z][a-z0-9+.-]*):\/\/(?<authority>[^/?#]+)/i;

/**
 * Checks a URL before its name is resolved (TG-9).
 * @throws EgressRefusal
 */
export function readTarget(text: string, allowance: EgressAllowance): EgressTarget {
  const parts = text.length <= MAX_URL_LENGTH ? AUTHORITY.exec(text)?.groups : undefined;
  const url = URL.parse(text);
  if (url !== null && !/^https?:$/.test(url.protocol)) {
    throw new EgressRefusal('scheme', 'url must begin with http:// or https://.');
  }
  // URL parsers treat these characters differently.
  const odd = /[\s\\\p{Cc}\p{Cf}]/u.test(text);
  if (parts === undefined || url === null || odd) {
    throw new EgressRefusal(
      'not_a_url',
      'url must be a complete http or https URL, percent-encoded, of at most 4096 characters.',
    );
  }
  const { authority = '' } = parts;
  if (url.username !== '' || url.password !== '' || authority.includes('@')) {
    throw new EgressRefusal('credentials', 'url must not contain a user name or password.');
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port);
  const isAddress = parseIpAddress(host) !== undefined;
  const shown = `${url.hostname.replace(/\.$/, '')}:${port}`;
  if (isAddress && !isPlain(authority, url.hostname)) {
    throw new EgressRefusal(
      'disguised',
      'url must write an address in its usual form, such as 192.0.2.1 or [2001:db8::1].',
    );
  }
  if (allowance.hosts.includes(shown)) return { url, host, port, allowed: true };
  if (isAddress) rejectAddress(host, host);
  else if (isLocalName(host)) {
    throw new EgressRefusal(
      'local_name',
      `${host} is a name of a private network. Tools may not connect to it.`,
    );
  }
  if (!OPEN_PORTS.includes(port) && !allowance.ports.includes(port)) {
    throw new EgressRefusal(
      'port',
      `Port ${port} is not allowed. Tools may use ports 80, 443 and the configured ports.`,
    );
  }
  return { url, host, port, allowed: false };
}

/**
 * Checks the resolved addresses of a target; one rejected address rejects the target (TG-9).
 * @throws EgressRefusal
 */
export function checkAddresses(
  { host, allowed }: EgressTarget,
  addresses: readonly string[],
): void {
  if (addresses.length === 0) {
    throw new EgressRefusal('unresolved', `${host} cannot be resolved.`);
  }
  if (allowed) return;
  for (const address of addresses) rejectAddress(address, host);
}

/**
 * Parses and checks the URL of a redirect. As for the first URL, the caller then resolves the host name and checks its
 * addresses.
 * @throws EgressRefusal
 */
export function readRedirect(
  from: EgressTarget,
  location: string,
  allowance: EgressAllowance,
): EgressTarget {
  const target = readTarget(absolute(location, from.url), allowance);
  if (from.url.protocol === 'https:' && target.url.protocol === 'http:') {
    throw new EgressRefusal('downgrade', `${from.host} redirects from https to http.`);
  }
  return target;
}

/**
 * Returns the absolute URL of a redirect. A location that contains a host is not normalized, so that the checks see its
 * original spelling.
 */
function absolute(location: string, base: URL): string {
  if (/^[a-z][a-z0-9+.-]*:/i.test(location)) return location;
  if (/^[/\\]{2}/.test(location)) return `${base.protocol}${location}`;
  return URL.parse(location, base)?.href ?? location;
}

function rejectAddress(address: string, host: string): void {
  const rule = refusedAddress(address);
  if (rule === undefined) return;
  const kind = rule.replaceAll('_', ' ');
  throw new EgressRefusal(
    rule,
    `${host} is not on the public internet (${kind}). Tools may not connect to it.`,
  );
}

function isPlain(authority: string, hostname: string): boolean {
  const host = authority.replace(/:\d*$/, '').toLowerCase();
  if (host === hostname) return true;
  // Accepts any spelling of an IPv6 address, unless it contains an embedded IPv4 address.
  return host.startsWith('[') && !host.includes('.');
}

function isLocalName(host: string): boolean {
  const name = host.replace(/\.$/, '');
  return !name.includes('.') || LOCAL_NAMES.test(name);
}
