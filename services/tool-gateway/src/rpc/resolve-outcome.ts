import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  ResolvedOutcome,
  type ResolveOutcomeRequest,
  type ToolGatewayService,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import {
  canonicalDigest,
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  parseJsonStrict,
} from '@writ/kernel';
import type { Handlers } from '@writ/rpc';
import {
  MAX_RESOLVED_RESULT_BYTES,
  type Resolution,
  resolveOutcome as resolve,
} from '../app/receipts/resolve-outcome.ts';
import type { GatewayContext } from '../context.ts';
import { toCallKey } from '../wire/call.ts';

/** Records an operator's resolution of an unknown outcome (TG-5). */
export function resolveOutcome(
  context: GatewayContext,
): Handlers<typeof ToolGatewayService>['resolveOutcome'] {
  return async (request) => {
    const key = toCallKey(request.call);
    const { receipt, resolvedAt } = await resolve(context, key, toResolution(request));
    return { receipt, resolveTime: timestampFromDate(resolvedAt) };
  };
}

function toResolution(request: ResolveOutcomeRequest): Resolution {
  const { requestId, outcome, resultJson, resolvedBy, comment } = request;
  const done = outcome === ResolvedOutcome.DONE;
  if (!done && resultJson !== '') {
    throw invalidResult('result_json must be empty for a call that was not executed.');
  }
  const digest = canonicalDigest({ outcome, resultJson, resolvedBy, comment });
  return {
    requestId,
    digest,
    resolvedBy,
    done,
    ...(resultJson !== '' && { result: { json: resultJson, value: readResult(resultJson) } }),
  };
}

function readResult(json: string): JsonObject {
  const limits = { field: 'result_json', maxBytes: MAX_RESOLVED_RESULT_BYTES };
  const value = parseJsonStrict(json, limits);
  if (!isJsonObject(value)) throw invalidResult('result_json must be a JSON object.');
  return value;
}

function invalidResult(message: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_RESULT', message, { field: 'result_json' });
}
