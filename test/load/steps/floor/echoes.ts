import { create, type DescService } from '@bufbuild/protobuf';
import {
  GenerateRequestSchema,
  ModelService,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { createVerifier, internalGate, type ServiceName, trustSigners } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { createRpcServer, type Handlers, type Route, route, unimplemented } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import { createOpenAiProvider } from '../../../../services/execution-meter/src/providers/openai/ask-openai.ts';
import type { Attempt } from '../../../../services/execution-meter/src/providers/provider.ts';
import { readChatRequest } from '../../../../services/execution-meter/src/rpc/messages/chat-request.ts';
import type { FloorSigners } from './counter.ts';
import { measuredModel } from './measured-model.ts';
import type { StepMessages } from './messages.ts';
import type { FloorStores } from './stores.ts';

/** What the echoes are made of. */
export interface EchoParts {
  /** Where the models.yaml of the measured platform is. */
  readonly folder: string;
  readonly stores: FloorStores;
  readonly telemetry: Telemetry;
  readonly signers: FloorSigners;
  /** What is said in each step. */
  readonly messages: readonly StepMessages[];
}

/** `host:port` of each service that a step calls. */
export interface EchoAddresses {
  readonly meter: string;
  readonly supervisor: string;
  readonly gateway: string;
}

/**
 * Starts the three services of a step, with handlers that only commit and answer what was put together
 * before. The meter's also asks the model between its two commits, with the meter's own provider and the
 * catalog entry of the measured platform.
 */
export async function startEchoes(parts: EchoParts): Promise<EchoAddresses> {
  const { stores, messages } = parts;
  const saidOf = byCallId(messages, (said) => said);
  const supervisor = routeOf(ReviewService, {
    async reviewAction({ callId }) {
      await stores.supervisor();
      return { decision: saidOf(callId).decision };
    },
  });
  const gateway = routeOf(ToolGatewayService, {
    async callTool({ call }) {
      await stores.gateway();
      await stores.gateway();
      return saidOf(call?.callId).outcome;
    },
  });
  return {
    meter: await serve(parts, 'execution-meter', meterRoute(parts)),
    supervisor: await serve(parts, 'supervisor', supervisor),
    gateway: await serve(parts, 'tool-gateway', gateway),
  };
}

function meterRoute({ folder, stores, messages }: EchoParts): Route {
  const model = measuredModel(folder);
  const ask = createOpenAiProvider();
  const saidOf = byCallId(messages, (said) => {
    const attempt: Omit<Attempt, 'signal' | 'requestId'> = {
      model,
      apiKey: 'none',
      chat: readChatRequest(create(GenerateRequestSchema, said.generate)),
      maxOutputTokens: BigInt(model.maxOutputTokens),
      timeoutMs: model.timeoutMs,
      traceparent: undefined,
      onText: () => undefined,
    };
    return { ...said, attempt };
  });
  return routeOf(ModelService, {
    async *generate({ callId }, { signal }) {
      const { attempt, attemptStarted, finished } = saidOf(callId);
      await stores.meter();
      yield attemptStarted;
      const { type } = await ask({ ...attempt, requestId: callId, signal });
      if (type !== 'answered') throw new Error(`A question of the floor ${type}.`);
      await stores.meter();
      yield finished;
    },
  });
}

/** What was prepared for a call, be it the model's or the one that is proposed. */
function byCallId<T>(
  messages: readonly StepMessages[],
  prepare: (said: StepMessages) => T,
): (callId: string | undefined) => T {
  const prepared = new Map(
    messages.flatMap((said) => {
      const one = prepare(said);
      return [said.generate.callId, said.review.callId].map((callId) => [callId, one] as const);
    }),
  );
  return (callId) => {
    const found = prepared.get(callId);
    if (found === undefined) throw new Error(`Nothing was prepared for ${callId}.`);
    return found;
  };
}

function routeOf<S extends DescService>(service: S, handlers: Partial<Handlers<S>>): Route {
  const none = unimplemented('Only the RPCs of a step are echoed.');
  const others = Object.fromEntries(service.methods.map(({ localName }) => [localName, none]));
  return route(service, { ...others, ...handlers } as unknown as Handlers<S>);
}

/** The gate is the one of the service, so is what it asks for. */
async function serve(
  { telemetry, signers }: EchoParts,
  service: ServiceName,
  ...routes: readonly Route[]
): Promise<string> {
  const trust = trustSigners(...Object.values(signers));
  const server = await createRpcServer({
    host: '127.0.0.1',
    port: 0,
    routes,
    gate: internalGate({
      service,
      verifier: createVerifier({ trust, clock: systemClock }),
      // The gateway goes by writs instead.
      enforceSlotGrants: service !== 'tool-gateway',
    }),
    telemetry,
  });
  server.setServing(true);
  return server.address;
}
