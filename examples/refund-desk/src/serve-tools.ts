import { join } from 'node:path';
import { loadYaml } from '@writ/config';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { ToolProviderService } from '@writ/contracts/writ/tool/v1/tool_provider_service_pb';
import {
  createTrust,
  createVerifier,
  internalGate,
  openServiceTls,
  TOOL_PROVIDER,
} from '@writ/identity';
import {
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  NotFoundError,
  parseJsonStrict,
  systemClock,
  ToolFailure,
  type Tools,
} from '@writ/kernel';
import { createRpcServer, type Handlers, route } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import type { ProviderConfig } from './config.ts';
import { createTools } from './tools.ts';

/** The refund tools, served over gRPC. */
export interface ServedTools {
  /** `host:port`. */
  readonly address: string;
  close(): Promise<void>;
}

type Invoke = Handlers<typeof ToolProviderService>['invoke'];

interface DescribedTools {
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly input_schema: JsonObject;
  }[];
}

/**
 * Serves the refund tools to a gateway (TG-6): each call must carry a service token that the gateway
 * signed for tool providers.
 */
export async function serveTools(
  config: Omit<ProviderConfig, 'logLevel'>,
  telemetry: Telemetry,
): Promise<ServedTools> {
  const { host, port, dataDir, gatewayAddress, cleartext } = config;
  const clock = systemClock;
  const { log } = telemetry;
  const tls = config.tls && openServiceTls({ service: TOOL_PROVIDER, ...config.tls, log });
  const tools = await createTools({ dataDir, variables: {}, clock });
  const trust = createTrust({
    addresses: { 'tool-gateway': gatewayAddress },
    telemetry,
    clock,
    tls,
  });
  const server = await createRpcServer({
    host,
    port,
    tls: tls?.server,
    cleartext,
    routes: [
      route(ToolProviderService, {
        describeTools: async () => describe(),
        invoke: invokeOf(tools),
      }),
    ],
    gate: internalGate({
      service: TOOL_PROVIDER,
      verifier: createVerifier({ trust, clock }),
      enforceSlotGrants: false,
      trustDomain: tls?.trustDomain,
    }),
    telemetry,
  });
  server.setServing(true);
  return {
    address: server.address,
    async close() {
      await server.close();
      trust.close();
      tls?.close();
      await tools[Symbol.asyncDispose]?.();
    },
  };
}

function describe() {
  const file = join(import.meta.dirname, '../tools.yaml');
  const { value } = loadYaml<DescribedTools>(file, { type: 'object', required: ['tools'] });
  return {
    tools: value.tools.map(({ name, description, input_schema }) => ({
      name,
      description,
      inputSchemaJson: JSON.stringify(input_schema),
    })),
  };
}

function invokeOf(tools: Tools): Invoke {
  return async (
    { tool, argumentsJson, idempotencyKey, tenant, runId, agentName, callId },
    call,
  ) => {
    const run = Object.hasOwn(tools, tool) ? tools[tool] : undefined;
    if (run === undefined) {
      throw new NotFoundError('TOOL_NOT_FOUND', `Tool ${tool} does not exist.`, { tool });
    }
    const args = parseJsonStrict(argumentsJson, { field: 'arguments_json' });
    if (!isJsonObject(args)) {
      throw new InvalidRequestError('INVALID_ARGUMENTS', 'arguments_json must be a JSON object.', {
        field: 'arguments_json',
      });
    }
    const { signal } = call;
    try {
      const result = await run(args, { idempotencyKey, tenant, runId, agentName, callId, signal });
      const content = JSON.stringify(result);
      return { outcome: { case: 'result', value: { kind: ResultKind.JSON, content } } };
    } catch (error) {
      if (!(error instanceof ToolFailure)) throw error;
      return { outcome: { case: 'failure', value: { message: error.message } } };
    }
  };
}
