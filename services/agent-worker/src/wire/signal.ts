import type { SignalRequest } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { InvalidRequestError, isJsonObject, parseJsonStrict } from '@writ/kernel';
import { FEED_ITEM } from '../domain/agent/message.ts';
import type { OwnTime } from '../domain/agent/peer-time.ts';
import type { IncomingSignal } from '../domain/agent/signal.ts';
import { credentialsFrom } from './credentials.ts';
import { decisionFrom } from './decision.ts';

const APPROVAL = 'approval:';
/** Signals that only the worker itself may send. */
const INTERNAL = ['reply:', 'timer:', FEED_ITEM];
const MAX_PAYLOAD_BYTES = 1_048_576;

/**
 * Converts a signal.
 * @throws InvalidRequestError INVALID_SIGNAL naming the field; the errors of parseJsonStrict and decisionFrom
 */
export function signalFrom(request: SignalRequest, ownTime: OwnTime): IncomingSignal {
  const { tenant, runId, agentInstance, requestId, name, payloadJson, approval, sender } = request;
  if (INTERNAL.some((prefix) => name.startsWith(prefix))) {
    throw invalid('name', `must not be ${name}, which is reserved for the worker`);
  }
  if (payloadJson !== '') {
    const limits = { field: 'payload_json', maxBytes: MAX_PAYLOAD_BYTES };
    if (!isJsonObject(parseJsonStrict(payloadJson, limits))) {
      throw invalid('payload_json', 'must be a JSON object');
    }
  }
  const decision = approval && decisionFrom(approval.decision);
  if (name.startsWith(APPROVAL) !== (decision !== undefined)) {
    const rule = `is required for ${APPROVAL}<call_id> and not permitted for other signals`;
    throw invalid('approval', rule);
  }
  if (decision !== undefined && name !== `${APPROVAL}${decision.callId}`) {
    throw invalid('approval.decision.call_id', 'must match the call_id in the name of the signal');
  }
  if (decision?.settled === false) throw invalid('approval.decision', 'must be settled');
  return {
    agent: { tenant, runId, instance: agentInstance },
    requestId,
    name,
    payloadJson,
    sender,
    decision,
    credentials: approval?.credentials && credentialsFrom(approval.credentials, ownTime),
  };
}

function invalid(field: string, rule: string): InvalidRequestError {
  return new InvalidRequestError('INVALID_SIGNAL', `${field} ${rule}.`, { field });
}
