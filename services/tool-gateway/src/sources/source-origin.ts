import { dirname, resolve } from 'node:path';
import { ConfigError } from '@writ/config';
import type { EgressAllowance } from '../domain/egress/egress-rules.ts';
import type { McpServer } from './mcp/mcp-transport.ts';
import type { McpEntry, SourceEntry } from './tools-schema.ts';
import { substitute, type Variables } from './variables.ts';

/** Where the tools of a source come from, with everything filled in. */
export type SourceOrigin =
  | { readonly kind: 'local' /** Absolute. */; readonly module: string }
  | {
      readonly kind: 'provider';
      /** `host:port`. */
      readonly address: string;
      /** It is called without TLS also where services have it. */
      readonly cleartext?: true;
    }
  | { readonly kind: 'builtin'; readonly egress: EgressAllowance }
  | { readonly kind: 'mcp'; readonly server: McpServer };

/**
 * Reads where a source's tools come from. Modules are found from the folder of `file`.
 * @throws ConfigError naming the setting that is malformed, or refers to a variable that is not set
 */
export function readOrigin(entry: SourceEntry, file: string, variables: Variables): SourceOrigin {
  const filled = (name: string, text: string): string => {
    const result = substitute(text, variables);
    if ('text' in result) return result.text;
    throw new ConfigError(name, [`${name} refers to ${result.missing}, which is not set.`]);
  };
  switch (entry.kind) {
    case 'local':
      return { kind: 'local', module: resolve(dirname(file), entry.module) };
    case 'provider': {
      const address = filled('address', entry.address);
      if (/^[^\s:]+:\d{1,5}$/.test(address))
        return { kind: 'provider', address, ...(entry.tls === false && { cleartext: true }) };
      throw new ConfigError('address', ['address must be host:port, such as 127.0.0.1:50061.']);
    }
    case 'builtin': {
      const hosts = entry.allow_hosts ?? [];
      return {
        kind: 'builtin',
        egress: {
          hosts: hosts.map((host) => hostAndPort(filled('allow_hosts', host))),
          ports: entry.allow_ports ?? [],
        },
      };
    }
    case 'mcp':
      return { kind: 'mcp', server: readServer(entry, dirname(resolve(file)), filled) };
  }
}

function readServer(
  entry: McpEntry,
  folder: string,
  filled: (name: string, text: string) => string,
): McpServer {
  const all = (name: string, values: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, filled(`${name}.${key}`, value)]),
    );
  if ('url' in entry) {
    const url = filled('url', entry.url);
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
      throw new ConfigError('url', ['url must be an http or https URL.']);
    }
    return { transport: 'http', url, headers: all('headers', entry.headers) };
  }
  const args = (entry.args ?? []).map((arg) => filled('args', arg));
  const command = filled('command', entry.command);
  return { transport: 'stdio', command, args, env: all('env', entry.env), cwd: folder };
}

/** As URLs write it, so that it is found whatever way it was written. */
function hostAndPort(text: string): string {
  const port = /:(\d{1,5})$/.exec(text)?.[1];
  const url = port === undefined ? null : URL.parse(`http://${text}/`);
  if (url !== null && url.pathname === '/' && url.username === '') {
    return `${url.hostname}:${port}`;
  }
  throw new ConfigError('allow_hosts', ['allow_hosts must hold host:port, such as wiki.corp:443.']);
}
