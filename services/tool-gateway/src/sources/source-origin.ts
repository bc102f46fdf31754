import { dirname, resolve } from 'node:path';
import { ConfigError } from '@writ/config';
import type { EgressAllowance } from '../domain/egress/egress-rules.ts';
import type { SourceEntry } from './tools-schema.ts';
import { substitute, type Variables } from './variables.ts';

/** Where the tools of a source come from, with everything filled in. */
export type SourceOrigin =
  | { readonly kind: 'local' /** Absolute. */; readonly module: string }
  | { readonly kind: 'provider' /** `host:port`. */; readonly address: string }
  | { readonly kind: 'builtin'; readonly egress: EgressAllowance };

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
      if (/^[^\s:]+:\d{1,5}$/.test(address)) return { kind: 'provider', address };
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
  }
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
