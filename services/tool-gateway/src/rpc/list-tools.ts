import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { SideEffect, type ToolDefinitionSchema } from '@writ/contracts/writ/tool/v1/tool_pb';
import { InvalidRequestError, TOOL_NAME_PATTERN } from '@writ/kernel';
import type { Caller, Handlers } from '@writ/rpc';
import type { GatewayContext } from '../context.ts';
import type { Registry } from '../domain/registry.ts';
import type { Tool } from '../domain/tool.ts';

type Definition = MessageInitShape<typeof ToolDefinitionSchema>;

const DEFAULT_PAGE = 200;
/** Largest size of the schemas of one page, in bytes; a message has at most 4 MiB. */
const MAX_PAGE_BYTES = 2 * 1024 * 1024;

const SIDE_EFFECTS = {
  read_only: SideEffect.READ_ONLY,
  idempotent: SideEffect.IDEMPOTENT,
  destructive: SideEffect.DESTRUCTIVE,
} as const;

/** Lists every tool to the supervisor, and to a worker the tools that its agent may call (TG-6). */
export function listTools({
  tools,
  bus,
}: Pick<GatewayContext, 'tools' | 'bus'>): Handlers<typeof ToolGatewayService>['listTools'] {
  return async ({ names, knownVersion, pageSize, pageToken }, { caller }) => {
    const { registry } = tools.now;
    const registryVersion = registry.version;
    const emitsHookEvents = bus.hasSubscribers();
    if (knownVersion === registryVersion) {
      return { registryVersion, unchanged: true, emitsHookEvents };
    }
    if (pageToken !== '' && !TOOL_NAME_PATTERN.test(pageToken)) {
      throw new InvalidRequestError(
        'INVALID_PAGE_TOKEN',
        'page_token is invalid. Use next_page_token of the previous response.',
        {
          field: 'page_token',
        },
      );
    }
    const wanted = visible(registry, caller).filter(
      ({ name }) => name > pageToken && (names.length === 0 || names.includes(name)),
    );
    const page = takePage(wanted, pageSize === 0 ? DEFAULT_PAGE : pageSize);
    const more = page.length < wanted.length;
    return {
      tools: page.map(toDefinition),
      registryVersion,
      emitsHookEvents,
      nextPageToken: more ? (page.at(-1)?.name ?? '') : '',
    };
  };
}

function visible(registry: Registry, { agent }: Caller): readonly Tool[] {
  const all = Array.from(registry.tools.values());
  if (agent === undefined) return all;
  const client = { tenant: agent.tenant, agentName: agent.agent.name };
  return all.filter(({ name }) => agent.tools.includes(name) && registry.allows(client, name));
}

function takePage(tools: readonly Tool[], size: number): readonly Tool[] {
  let bytes = 0;
  const end = tools.findIndex((tool, index) => {
    bytes += Buffer.byteLength(schemaOf(tool)) + Buffer.byteLength(tool.description);
    return index === size || (index > 0 && bytes > MAX_PAGE_BYTES);
  });
  return end === -1 ? tools : tools.slice(0, end);
}

function schemaOf({ inputSchema }: Tool): string {
  return JSON.stringify(inputSchema);
}

function toDefinition(tool: Tool): Definition {
  return {
    name: tool.name,
    description: tool.description,
    inputSchemaJson: schemaOf(tool),
    sideEffect: SIDE_EFFECTS[tool.sideEffect],
    timeout: durationFromMs(tool.timeoutMs),
    maxOutputBytes: tool.maxOutputBytes,
    maxCallsPerAgent: tool.maxCallsPerAgent,
    maxRepeats: tool.maxRepeats,
    risk: tool.risk,
    source: tool.source,
    definitionDigest: tool.digest,
  };
}
