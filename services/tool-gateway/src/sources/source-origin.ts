import { dirname, resolve } from 'node:path';
import { ConfigError } from '@writ/config';
import type { EgressAllowance } from '@writ/service';
import type { McpServer } from './mcp/mcp-transport.ts';
import type { McpEntry, SourceEntry } from './tools-schema.ts';

/** Values that tools.yaml may refer to, by name. Contains secrets; never log it. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Origin of the tools of a source, with references resolved. */
export type SourceOrigin =
  | { readonly kind: 'local' /** Absolute path. */; readonly module: string }
  | {
      readonly kind: 'provider';
      /** `host:port`. */
      readonly address: string;
      /** The provider is called without TLS, even if the services use TLS. */
      readonly cleartext?: true;
    }
  | { readonly kind: 'builtin'; readonly egress: EgressAllowance }
  | { readonly kind: 'mcp'; readonly server: McpServer };

/** `${NAME}` or `${NAME:-default}`. */
const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/**
 * Reads the origin of a source. Module paths are relative to the folder of `file`.
 * @throws ConfigError naming the setting that is malformed, or refers to a variable that is not set
 */
export function readOrigin(entry: SourceEntry, file: string, variables: Variables): SourceOrigin {
  const filled = (name: string, text: string): string =>
    text.replaceAll(REFERENCE, (_, variable: string, fallback: string | undefined) => {
      const set = Object.hasOwn(variables, variable) ? variables[variable]?.trim() : undefined;
      // An empty variable counts as unset.
      const value = set || fallback;
      if (value !== undefined) return value;
      throw new ConfigError(name, [`${name} refers to ${variable}, which is not set.`]);
    });
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

/** `host:port` in the form that URLs use. */
function hostAndPort(text: string): string {
  const port = /:(\d{1,5})$/.exec(text)?.[1];
  const url = port === undefined ? null : URL.parse(`http://${text}/`);
  if (url !== null && url.pathname === '/' && url.username === '') {
    return `${url.hostname}:${port}`;
  }
  throw new ConfigError('allow_hosts', [
    'allow_hosts must contain host:port, such as wiki.corp:443.',
  ]);
}
