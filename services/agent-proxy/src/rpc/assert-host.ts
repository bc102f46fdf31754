import { isIP } from 'node:net';
import { PermissionDeniedError } from '@writ/kernel';
import type { WebRequest } from '@writ/rpc/edge';

/**
 * Rejects requests that web pages in a browser send, and requests with an unknown Host header, which DNS rebinding
 * would use.
 * @throws PermissionDeniedError HOST_NOT_ALLOWED
 */
export function assertHost({ headers }: WebRequest, hosts: readonly string[]): void {
  const host = hostOf(headers.host ?? String(headers[':authority'] ?? ''));
  const isDefault = host === 'localhost' || isIP(host) !== 0;
  const isAllowed = hosts.length === 0 ? isDefault : hosts.some((each) => hostOf(each) === host);
  if (headers.origin === undefined && isAllowed) return;
  const message =
    headers.origin === undefined
      ? `agent-proxy does not accept the host ${host}; set WRIT_AGENT_PROXY_HOSTS to the names by which agents reach it.`
      : 'agent-proxy does not accept requests of a browser (header Origin); send them from a program.';
  throw new PermissionDeniedError('HOST_NOT_ALLOWED', message, {
    setting: 'WRIT_AGENT_PROXY_HOSTS',
  });
}

/** The host in lower case, without port and brackets. An IPv6 address without brackets has no port. */
function hostOf(authority: string): string {
  const bracketed = /^\[([^\]]+)\]/.exec(authority)?.[1];
  return (bracketed ?? authority.replace(/^([^:]*):\d+$/, '$1')).toLowerCase();
}
