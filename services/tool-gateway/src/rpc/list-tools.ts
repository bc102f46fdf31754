import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import {
  type AllowRuleSchema,
  SideEffect,
  type ToolDefinitionSchema,
} from '@writ/contracts/writ/tool/v1/tool_pb';
import { InvalidRequestError, TOOL_NAME_PATTERN } from '@writ/kernel';
import type { Caller, Handlers } from '@writ/rpc';
import type { GatewayContext } from '../context.ts';
import type { AllowRule, AllowRules, Registry } from '../domain/registry.ts';
import type { Tool } from '../domain/tool.ts';

type Definition = MessageInitShape<typeof ToolDefinitionSchema>;

const DEFAULT_PAGE = 200;
/** Largest size of the schemas and allowlists of one page, in bytes; a message has at most 4 MiB. */
const MAX_PAGE_BYTES = 2 * 1024 * 1024;

const NO_RULES: AllowRules = { agents: undefined, tenants: undefined };

const SIDE_EFFECTS = {
  read_only: SideEffect.READ_ONLY,
  idempotent: SideEffect.IDEMPOTENT,
  destructive: SideEffect.DESTRUCTIVE,
} as const;

/**
 * Lists every tool to the supervisor, with the agents and tenants that may call it (TG-2), and to a worker the tools
 * that its agent may call (TG-6).
 */
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
    const rulesOf = (tool: Tool) => (caller.agent ? NO_RULES : registry.rulesOf(tool.name));
    const page = takePage(wanted, pageSize === 0 ? DEFAULT_PAGE : pageSize, rulesOf);
    const more = page.length < wanted.length;
    return {
      tools: page.map((tool) => toDefinition(tool, rulesOf(tool))),
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

function takePage(
  tools: readonly Tool[],
  size: number,
  rulesOf: (tool: Tool) => AllowRules,
): readonly Tool[] {
  let bytes = 0;
  const end = tools.findIndex((tool, index) => {
    const { agents, tenants } = rulesOf(tool);
    bytes += Buffer.byteLength(schemaOf(tool)) + Buffer.byteLength(tool.description);
    for (const name of [...(agents?.names ?? []), ...(tenants?.names ?? [])]) bytes += name.length;
    return index === size || (index > 0 && bytes > MAX_PAGE_BYTES);
  });
  return end === -1 ? tools : tools.slice(0, end);
}

function schemaOf({ inputSchema }: Tool): string {
  return JSON.stringify(inputSchema);
}

function toDefinition(tool: Tool, { agents, tenants }: AllowRules): Definition {
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
    ...(agents && { allowedAgents: toRule(agents) }),
    ...(tenants && { allowedTenants: toRule(tenants) }),
  };
}

function toRule({ names, except }: AllowRule): MessageInitShape<typeof AllowRuleSchema> {
  return { names: [...names], except };
}
