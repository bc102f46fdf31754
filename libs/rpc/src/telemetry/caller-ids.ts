import { omitUndefined } from '@writ/kernel';
import {
  ATTR_WRIT_AGENT,
  ATTR_WRIT_AGENT_NAME,
  ATTR_WRIT_EPOCH,
  ATTR_WRIT_RUN_ID,
  ATTR_WRIT_SESSION_ID,
  ATTR_WRIT_TENANT,
} from '@writ/telemetry';
import type { Caller } from '../caller.ts';

/** The ids of `caller` as log fields; unknown ids are omitted. */
export function callerFields(caller: Caller): Record<string, string> {
  const { agent, person, service, slotGrant } = caller;
  return omitUndefined({
    caller: service?.name,
    tenant: agent?.tenant ?? slotGrant?.tenant ?? person?.tenant,
    run_id: agent?.runId ?? slotGrant?.runId,
    agent: agent?.agent.instance ?? slotGrant?.agentInstance,
  });
}

/** The ids of `caller` as span attributes; unknown ids are omitted (SYS-1). */
export function callerAttributes(caller: Caller): Record<string, string> {
  const { tenant, run_id, agent } = callerFields(caller);
  return omitUndefined({
    [ATTR_WRIT_TENANT]: tenant,
    [ATTR_WRIT_RUN_ID]: run_id,
    [ATTR_WRIT_SESSION_ID]: caller.agent?.sessionId,
    [ATTR_WRIT_AGENT]: agent,
    [ATTR_WRIT_AGENT_NAME]: caller.agent?.agent.name,
    [ATTR_WRIT_EPOCH]: caller.epoch?.toString(),
  });
}
