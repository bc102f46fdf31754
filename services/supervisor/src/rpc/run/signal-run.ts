import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import {
  derivedId,
  InvalidRequestError,
  isJsonObject,
  PreconditionError,
  parseJsonStrict,
} from '@writ/kernel';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { loadAgent } from '../../store/agent/agents.ts';
import { loadRun } from '../../store/run/runs.ts';

const MAX_PAYLOAD_BYTES = 1_048_576;
/** Woken by the supervisor alone, which says what was decided. */
const RESERVED = 'approval:';

/** SignalRun: hands a signal to the worker, which has it durably when this answers. */
export function signalRun(context: SupervisorContext): Handler<typeof RunService.method.signalRun> {
  return async (request, call) => {
    const { tenant, subject } = requirePerson(call);
    const { runId, requestId, name, payloadJson } = request;
    checkPayload(payloadJson);
    if (name.startsWith(RESERVED)) {
      throw new InvalidRequestError(
        'SIGNAL_RESERVED',
        `name must not begin with ${RESERVED}; DecideApproval answers an approval.`,
        { field: 'name' },
      );
    }
    const run = await loadRun(context.store.db, { tenant, runId });
    const instance = request.agentInstance === '' ? run.root_instance : request.agentInstance;
    const agent = await loadAgent(context.store.db, { tenant, runId, instance });
    if (agent.ended_at !== null) {
      throw new PreconditionError(
        'RUN_ENDED',
        `Agent ${instance} of run ${runId} has ended with ${agent.ending_stop_reason}.`,
        { run_id: runId, stop_reason: agent.ending_stop_reason ?? '' },
      );
    }
    const accepted = await context.peers.agentWorker.signal({
      // Two callers may choose the same id.
      requestId: derivedId('sig', tenant, runId, subject, requestId),
      tenant,
      runId,
      instance,
      name,
      payloadJson,
    });
    return { accepted };
  };
}

function checkPayload(text: string): void {
  if (text === '') return;
  const field = 'payload_json';
  if (isJsonObject(parseJsonStrict(text, { field, maxBytes: MAX_PAYLOAD_BYTES }))) return;
  throw new InvalidRequestError('INVALID_PAYLOAD', `${field} must be a JSON object.`, { field });
}
