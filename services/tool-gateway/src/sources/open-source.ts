import type { Clock } from '@writ/kernel';
import type { ChannelTls } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import { openBuiltinSource } from './builtin/builtin-source.ts';
import { type ShareOf, Slots } from './call-slots.ts';
import { openLocalSource } from './local.ts';
import { openProviderSource } from './provider.ts';
import type { ToolSource } from './source.ts';
import type { SourceDeclaration } from './tools-file.ts';

/** A source and its concurrency slots. */
export interface OpenSource extends ToolSource {
  readonly slots: Slots;
}

/** Dependencies of sources. */
export interface SourceParts {
  /** Folder for files of local tools. */
  readonly dataDir: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Creates this replica's share of a source's slots. */
  readonly shareOf: ShareOf;
  /** Service token of the gateway for tool providers. */
  readonly providerToken: () => Promise<string>;
  /** TLS for tool providers; undefined selects cleartext. */
  readonly providerTls?: ChannelTls | undefined;
}

/**
 * Opens a source that tools.yaml declares, with its own slots.
 * @throws ConfigError naming the module that cannot be used
 */
export async function openSource(
  declaration: SourceDeclaration,
  parts: SourceParts,
): Promise<OpenSource> {
  const source = await open(declaration, parts);
  const slots = new Slots(declaration.name, declaration, parts.shareOf);
  return {
    ...source,
    slots,
    async close() {
      await slots.close();
      await source.close();
    },
  };
}

async function open(declaration: SourceDeclaration, parts: SourceParts): Promise<ToolSource> {
  const { name, origin, tools, place } = declaration;
  const { telemetry, providerToken, providerTls, dataDir, variables, clock } = parts;
  switch (origin.kind) {
    case 'local':
      return await openLocalSource({
        name,
        module: origin.module,
        tools,
        place,
        context: { dataDir, variables, clock },
        log: telemetry.log,
      });
    case 'provider':
      return openProviderSource({
        name,
        address: origin.address,
        serviceToken: providerToken,
        tls: origin.cleartext === true ? undefined : providerTls,
        telemetry,
      });
    case 'mcp': {
      // Loaded on demand: the MCP client is large, and most gateways have no MCP server.
      const { openMcpSource } = await import('./mcp/mcp-source.ts');
      return openMcpSource({ name, server: origin.server, log: telemetry.log });
    }
    case 'builtin':
      return openBuiltinSource({ name, egress: origin.egress, log: telemetry.log });
  }
}
