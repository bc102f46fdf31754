import { isIP } from 'node:net';
import { PermissionDeniedError } from '@writ/kernel';
import type { WebRequest } from '@writ/rpc';

/**
 * Refuses pages of other sites in a browser, and names that were pointed at this address (DNS rebinding).
 * @throws PermissionDeniedError HOST_NOT_ALLOWED
 */
export function assertHost({ headers }: WebRequest, hosts: readonly string[]): void {
  const host = hostOf(headers.host ?? String(headers[':authority'] ?? ''));
  const isHere = host === 'localhost' || isIP(host) !== 0;
  if (headers.origin === undefined && (hosts.length === 0 ? isHere : hosts.includes(host))) return;
  const what = headers.origin === undefined ? `the host ${host}` : 'the Origin of a browser';
  throw new PermissionDeniedError(
    'HOST_NOT_ALLOWED',
    `agent-proxy does not accept ${what}; set WRIT_AGENT_PROXY_HOSTS to the names by which agents reach it.`,
    { setting: 'WRIT_AGENT_PROXY_HOSTS' },
  );
}

function hostOf(authority: string): string {
  const bracketed = /^\[([^\]]+)\]/.exec(authority)?.[1];
  return bracketed ?? authority.replace(/:\d+$/, '');
}
