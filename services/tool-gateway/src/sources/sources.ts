import type { Clock } from '@writ/kernel';
import type { Telemetry } from '@writ/telemetry';
import { openBuiltinSource } from './builtin/builtin-source.ts';
import type { Notes } from './builtin/builtin-tool.ts';
import { openLocalSource } from './local.ts';
import type { Offers } from './offered-tool.ts';
import { openProviderSource } from './provider.ts';
import { Slots } from './slots.ts';
import type { ToolSource } from './source.ts';
import type { SourceDeclaration } from './tools-file.ts';

/** A source and its places. */
export interface OpenSource extends ToolSource {
  readonly slots: Slots;
}

/** What sources are made with. */
export interface SourceParts {
  /** The folder in which local tools may keep files. */
  readonly dataDir: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Where the built-in tool note keeps its notes. */
  readonly notes: Notes;
  /** Proves the gateway to tool providers. */
  readonly providerToken: () => Promise<string>;
}

/** Every source of a gateway, by name. */
export interface Sources {
  /** The source of this name; undefined when there is none. */
  find(name: string): OpenSource | undefined;
  /** What sources say of their own tools, by source; one that cannot be asked is logged. */
  offers(): Promise<Offers>;
  close(): Promise<void>;
}

/**
 * Opens every source that tools.yaml declares.
 * @throws ConfigError naming the module that cannot be used; what was opened before is closed
 */
export async function openSources(
  declarations: readonly SourceDeclaration[],
  parts: SourceParts,
): Promise<Sources> {
  const opened = new Map<string, OpenSource>();
  const close = async (): Promise<void> => {
    await Promise.all(Array.from(opened.values(), (source) => source.close()));
  };
  try {
    for (const declaration of declarations) {
      const source = await open(declaration, parts);
      const slots = new Slots(declaration.name, declaration);
      opened.set(declaration.name, { ...source, slots });
    }
  } catch (error) {
    await close();
    throw error;
  }
  const offers = async (): Promise<Offers> => {
    const asked = Array.from(opened, async ([source, { offer }]) => {
      try {
        return [[source, (await offer?.()) ?? {}]] as const;
      } catch (error) {
        const error_type = error instanceof Error ? error.name : '';
        parts.telemetry.log.warn({ source, error_type }, 'A source does not say what it has.');
        return [];
      }
    });
    return new Map((await Promise.all(asked)).flat());
  };
  return { find: (name) => opened.get(name), offers, close };
}

async function open(declaration: SourceDeclaration, parts: SourceParts): Promise<ToolSource> {
  const { name, origin, tools, place } = declaration;
  const { telemetry, providerToken, dataDir, variables, clock, notes } = parts;
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
        telemetry,
      });
    case 'mcp': {
      // The client is large, and most gateways have no MCP server.
      const { openMcpSource } = await import('./mcp/mcp-source.ts');
      return openMcpSource({ name, server: origin.server, log: telemetry.log });
    }
    case 'builtin':
      return openBuiltinSource({ name, egress: origin.egress, clock, notes, log: telemetry.log });
  }
}
