import { clone } from '@bufbuild/protobuf';
import { durationMs } from '@bufbuild/protobuf/wkt';
import { Fit } from '@writ/contracts/writ/model/v1/model_pb';
import {
  type GenerateRequest,
  GenerateRequestSchema,
  type ModelService,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import { type CallContext, type Handlers, requireAgent } from '@writ/rpc';
import type { CallRequest } from '../app/calls/call-request.ts';
import { readChatRequest } from '../wire/chat-request.ts';
import { chunkMessage } from '../wire/generate-response.ts';
import { readNativeRequest } from '../wire/native-request.ts';
import { requestDigest } from '../wire/request-digest.ts';
import type { RpcContext } from './rpc-context.ts';

/**
 * Makes one model call for the calling agent: reserves budget, calls the provider and settles the usage (EM-3, EM-7). A
 * failed call sends `finished` and then ends with its error (EM-9).
 */
export function generate({ calls }: RpcContext): Handlers<typeof ModelService>['generate'] {
  return async function* (request, call) {
    for await (const chunk of calls.open(readCall(request, call), call.signal)) {
      if (chunk.type !== 'text' || request.deltas) yield chunkMessage(chunk);
    }
  };
}

function readCall(request: GenerateRequest, call: CallContext): CallRequest {
  const { tenant, runId, agent, priority, models } = requireAgent(call);
  const { epoch = 0n, slotGrant } = call.caller;
  const { native } = request;
  const nativeRequest = native && readNativeRequest(native);
  return {
    tenant,
    runId,
    instance: agent.instance,
    callId: request.callId,
    requestDigest: digestOf(request),
    epoch,
    // The slot grant is renewed every few seconds and has the current priority; the token can be minutes old.
    priority: slotGrant?.priority ?? priority,
    tokenModels: models,
    model: request.model,
    chat: nativeRequest?.chat ?? readChatRequest(request),
    maxOutputTokens: request.maxOutputTokens ?? nativeRequest?.maxOutputTokens,
    fit: request.fit === Fit.SHRINK ? 'shrink' : 'refuse',
    timeoutMs: request.timeout === undefined ? undefined : durationMs(request.timeout),
    step: request.step,
    after: request.after,
    disconnectGraceMs:
      request.disconnectGrace === undefined ? 0 : durationMs(request.disconnectGrace),
    requireContent: request.requireContent,
    traceparent: call.traceparent,
  };
}

/**
 * Returns the digest of the request without `timeout`, `disconnect_grace`, `deltas` and `after`, which can differ in a
 * repeat of the call.
 */
function digestOf(request: GenerateRequest): string {
  const digested = clone(GenerateRequestSchema, request);
  digested.deltas = false;
  digested.after = [];
  delete digested.timeout;
  delete digested.disconnectGrace;
  return requestDigest(GenerateRequestSchema, digested);
}
