import type { WebRequest } from '@writ/rpc/edge';
import { expect, it } from 'vitest';
import { assertHost } from './assert-host.ts';

const requestTo = (host: string) => ({ headers: { host } }) as WebRequest;

it.each([
  ['proxy.example', 'proxy.example:8081'],
  ['proxy.example:8081', 'proxy.example:8081'],
  ['Proxy.Example', 'PROXY.example'],
  ['[::1]', '[::1]:8081'],
  ['::1', '[::1]'],
  ['[FE80::1]:8081', '[fe80::1]'],
])(
  'accepts with WRIT_AGENT_PROXY_HOSTS=%s requests to %s, but not to other hosts (SYS-6)',
  (setting, host) => {
    expect(() => assertHost(requestTo(host), [setting])).not.toThrow();
    for (const other of ['evil.example', '[::2]:8081', 'localhost'])
      expect(() => assertHost(requestTo(other), [setting])).toThrow(/does not accept the host/);
  },
);
