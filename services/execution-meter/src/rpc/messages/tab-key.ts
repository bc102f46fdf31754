import type { TabKey } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { InvalidRequestError } from '@writ/kernel';
import type { AgentKey } from '../../domain/freeze.ts';

/** Returns the key of a tab; request validation ensures that it is present. */
export function agentKey(tab: TabKey | undefined): AgentKey {
  if (tab !== undefined) {
    const { tenant, runId, agentInstance } = tab;
    return { tenant, runId, agentInstance };
  }
  throw new InvalidRequestError('TAB_REQUIRED', 'tab is required.', { field: 'tab' });
}
