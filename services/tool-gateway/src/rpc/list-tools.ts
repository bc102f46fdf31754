import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import {
  type AllowRuleSchema,
  SideEffect,
  type ToolDefinitionSchema,
} from '@writ/contracts/writ/tool/v1/tool_pb';
import type { Handlers } from '@writ/rpc';
import { admitWorker } from '../app/calls/admit-worker.ts';
import { type ListedTool, listTools as list } from '../app/tools/list-tools.ts';
import type { GatewayContext } from '../context.ts';
import type { AllowRule } from '../domain/registry.ts';

const SIDE_EFFECTS = {
  read_only: SideEffect.READ_ONLY,
  idempotent: SideEffect.IDEMPOTENT,
  destructive: SideEffect.DESTRUCTIVE,
} as const;

/**
 * Lists every tool to the supervisor, with the agents and tenants that may call it (TG-2), and to a worker the tools
 * that its agent may call (TG-6). Records the epoch of a worker that has taken over its agent (RT-2).
 */
export function listTools(
  context: Pick<GatewayContext, 'tools' | 'bus' | 'store'>,
): Handlers<typeof ToolGatewayService>['listTools'] {
  const { tools, bus } = context;
  return async ({ knownVersion, admitEpoch, ...query }, { caller }) => {
    const { agent: own, epoch } = caller;
    if (admitEpoch && own !== undefined && epoch !== undefined) {
      const { tenant, runId, agent } = own;
      await admitWorker(context, { tenant, runId, instance: agent.instance }, epoch);
    }
    const { registry } = tools.now;
    const response = { registryVersion: registry.version, emitsHookEvents: bus.hasSubscribers() };
    if (knownVersion === registry.version) return { ...response, unchanged: true };
    const page = list(registry, caller, query);
    return {
      ...response,
      tools: page.tools.map(toDefinition),
      nextPageToken: page.nextPageToken,
    };
  };
}

function toDefinition({
  tool,
  schemaJson,
  rules: { agents, tenants },
}: ListedTool): MessageInitShape<typeof ToolDefinitionSchema> {
  return {
    name: tool.name,
    description: tool.description,
    inputSchemaJson: schemaJson,
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
