import {
  derivedId,
  InvalidRequestError,
  isJsonObject,
  NotFoundError,
  PreconditionError,
  parseJsonStrict,
  UnavailableError,
} from '@writ/kernel';
import type { Person } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { isExternal } from '../../domain/manifest/manifest-json.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { loadRun } from '../../store/run/runs.ts';

const MAX_PAYLOAD_BYTES = 1_048_576;
/**
 * Name prefix of the signals with which the supervisor delivers the decision on an approval; clients must not send
 * them.
 */
const APPROVAL_PREFIX = 'approval:';
/** Signals that only the supervisor sends, on a halt and when it is lifted. */
const RESERVED: readonly string[] = ['halted', 'resumed'];

/** One SignalRun request. */
export interface SignalRequest {
  readonly runId: string;
  /** Empty for the root. */
  readonly agentInstance: string;
  readonly requestId: string;
  readonly name: string;
  /** A JSON object, or empty. */
  readonly payloadJson: string;
}

/**
 * Sends a signal to the worker of an agent, or to agent-proxy for an external agent, and resolves after the signal was
 * accepted. Returns false for a repeated request.
 * @throws InvalidRequestError SIGNAL_RESERVED, INVALID_PAYLOAD and the errors of parseJsonStrict; PreconditionError
 *   RUN_ENDED; NotFoundError RUN_NOT_FOUND, AGENT_NOT_FOUND; UnavailableError AGENT_NOT_DELIVERED; errors of the worker
 */
export async function signalRun(
  { store, peers }: SupervisorContext,
  { tenant, subject }: Person,
  { runId, agentInstance, requestId, name, payloadJson }: SignalRequest,
): Promise<boolean> {
  checkPayload(payloadJson);
  checkName(name);
  const run = await loadRun(store.db, { tenant, runId });
  const instance = agentInstance === '' ? run.root_instance : agentInstance;
  const agent = await loadAgent(store.db, { tenant, runId, instance });
  if (agent.ended_at !== null) {
    throw new PreconditionError(
      'RUN_ENDED',
      `Agent ${instance} of run ${runId} has ended with ${agent.ending_stop_reason}.`,
      { run_id: runId, stop_reason: agent.ending_stop_reason ?? '' },
    );
  }
  try {
    return await peers.agentWorker.signal({
      // Includes the subject, because two callers may use the same request_id.
      requestId: derivedId('sig', tenant, runId, subject, requestId),
      tenant,
      runId,
      instance,
      isExternal: isExternal(agent),
      name,
      payloadJson,
      sender: subject,
    });
  } catch (error) {
    // The agent exists, so NOT_FOUND means that the order that delivers it to a worker is not done yet.
    throw error instanceof NotFoundError ? notDelivered(runId, instance) : error;
  }
}

function notDelivered(runId: string, instance: string): UnavailableError {
  return new UnavailableError(
    'AGENT_NOT_DELIVERED',
    `Agent ${instance} of run ${runId} has not been delivered to a worker yet; retry.`,
    { run_id: runId, agent: instance },
  );
}

function checkName(name: string): void {
  if (name.startsWith(APPROVAL_PREFIX)) {
    throw new InvalidRequestError(
      'SIGNAL_RESERVED',
      `name must not begin with ${APPROVAL_PREFIX}; use DecideApproval to answer an approval.`,
      { field: 'name' },
    );
  }
  if (!RESERVED.includes(name)) return;
  throw new InvalidRequestError(
    'SIGNAL_RESERVED',
    `name must not be ${name}; use Halt and Resume of ControlService.`,
    { field: 'name' },
  );
}

function checkPayload(text: string): void {
  if (text === '') return;
  const field = 'payload_json';
  if (isJsonObject(parseJsonStrict(text, { field, maxBytes: MAX_PAYLOAD_BYTES }))) return;
  throw new InvalidRequestError('INVALID_PAYLOAD', `${field} must be a JSON object.`, { field });
}
