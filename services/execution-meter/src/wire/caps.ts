import type { SetCapsRequest } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { BudgetLevel } from '@writ/contracts/writ/meter/v1/tab_pb';
import type { SetCaps } from '../store/balances.ts';
import { toCaps } from './tab.ts';

/**
 * Reads a SetCaps request. Message validation ensures that the level is a run, a session or a tenant level, and that
 * run_id and session_id are set only for the level of the same name.
 */
export function readSetCaps(request: SetCapsRequest): SetCaps {
  const { tenant, level, sessionId, runId, caps, setBy } = request;
  return { tenant, level: levelOf(level), sessionId, runId, caps: caps && toCaps(caps), setBy };
}

function levelOf(level: BudgetLevel): SetCaps['level'] {
  if (level === BudgetLevel.RUN) return 'run';
  if (level === BudgetLevel.SESSION) return 'session';
  return level === BudgetLevel.TENANT_DAY ? 'tenant_day' : 'tenant_month';
}
