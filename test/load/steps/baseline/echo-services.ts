import { create } from '@bufbuild/protobuf';
import {
  GenerateRequestSchema,
  ModelService,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { createVerifier, internalGate, type ServiceName, trustSigners } from '@writ/identity';
import { systemClock } from '@writ/kernel';
import { createRpcServer, partialRoute, type Route } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import { createModelProvider } from '../../../../services/execution-meter/src/providers/model-call/model-provider.ts';
import type { Attempt } from '../../../../services/execution-meter/src/providers/provider.ts';
import { readChatRequest } from '../../../../services/execution-meter/src/wire/chat-request.ts';
import type { BaselineSigners } from './counter.ts';
import { measuredModel } from './measured-model.ts';
import type { StepMessages } from './messages.ts';
import type { BaselineStores } from './stores.ts';

/** The dependencies of the echo services. */
export interface EchoOptions {
  /** Folder of the models.yaml of the measured platform. */
  readonly folder: string;
  readonly stores: BaselineStores;
  readonly telemetry: Telemetry;
  readonly signers: BaselineSigners;
  /** The messages of each step. */
  readonly messages: readonly StepMessages[];
}

/** `host:port` of each service that a step calls. */
export interface EchoAddresses {
  readonly meter: string;
  readonly supervisor: string;
  readonly gateway: string;
}

/**
 * Starts the three services of a step with handlers that only commit and return prepared answers. The meter
 * also calls the model between its two commits, through its own provider and the catalog entry of the
 * measured platform.
 */
export async function startEchoServices(parts: EchoOptions): Promise<EchoAddresses> {
  const { stores, messages } = parts;
  const messagesOf = byCallId(messages, (prepared) => prepared);
  const supervisor = partialRoute(ReviewService, {
    async reviewAction({ callId }) {
      await stores.supervisor();
      return { decision: messagesOf(callId).decision };
    },
  });
  const gateway = partialRoute(ToolGatewayService, {
    async callTool({ call }) {
      await stores.gateway();
      await stores.gateway();
      return messagesOf(call?.callId).outcome;
    },
  });
  return {
    meter: await serve(parts, 'execution-meter', meterRoute(parts)),
    supervisor: await serve(parts, 'supervisor', supervisor),
    gateway: await serve(parts, 'tool-gateway', gateway),
  };
}

function meterRoute({ folder, stores, messages }: EchoOptions): Route {
  const model = measuredModel(folder);
  const callModel = createModelProvider();
  const messagesOf = byCallId(messages, (prepared) => {
    const attempt: Omit<Attempt, 'signal' | 'requestId'> = {
      model,
      apiKey: 'none',
      chat: readChatRequest(create(GenerateRequestSchema, prepared.generate)),
      maxOutputTokens: BigInt(model.maxOutputTokens),
      timeoutMs: model.timeoutMs,
      traceparent: undefined,
      onText: () => undefined,
      mayStore: true,
      onEvent: () => undefined,
    };
    return { ...prepared, attempt };
  });
  return partialRoute(ModelService, {
    async *generate({ callId }, { signal }) {
      const { attempt, attemptStarted, finished } = messagesOf(callId);
      await stores.meter();
      yield attemptStarted;
      const { type } = await callModel({ ...attempt, requestId: callId, signal });
      if (type !== 'answered') throw new Error(`A model call of the baseline ${type}.`);
      await stores.meter();
      yield finished;
    },
  });
}

/** Looks up prepared data by the id of the model call or of the proposed call. */
function byCallId<T>(
  messages: readonly StepMessages[],
  prepare: (step: StepMessages) => T,
): (callId: string | undefined) => T {
  const prepared = new Map(
    messages.flatMap((step) => {
      const one = prepare(step);
      return [step.generate.callId, step.review.callId].map((callId) => [callId, one] as const);
    }),
  );
  return (callId) => {
    const found = prepared.get(callId);
    if (found === undefined) throw new Error(`No messages are prepared for ${callId}.`);
    return found;
  };
}

/** Serves routes with the authentication of the service. */
async function serve(
  { telemetry, signers }: EchoOptions,
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
      // The tool gateway authorizes by writ.
      enforceSlotGrants: service !== 'tool-gateway',
    }),
    telemetry,
  });
  server.setServing(true);
  return server.address;
}
