import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type Halt, HaltState } from '@writ/contracts/writ/control/v1/control_service_pb';
import type { Scope } from '@writ/contracts/writ/control/v1/freeze_pb';

const STATES: Readonly<Record<HaltState, string>> = {
  [HaltState.UNSPECIFIED]: 'unknown',
  [HaltState.PENDING]: 'pending',
  [HaltState.IN_FORCE]: 'in force',
  [HaltState.RESUMED]: 'resumed',
};

/** A halt in one line: id, state, scope, operator, time and reason. */
export function haltLine(halt: Halt): string {
  const at = halt.createTime === undefined ? '' : timestampDate(halt.createTime).toISOString();
  const by = halt.resumedBy === '' ? '' : `, lifted by ${halt.resumedBy}`;
  const ends = halt.endRuns ? ', ends runs' : '';
  return [
    halt.haltId,
    `${STATES[halt.state]}${by}`,
    `${scopeText(halt.scope)}${ends}`,
    `by ${halt.orderedBy} at ${at}`,
    halt.reason,
  ].join('  ');
}

function scopeText(scope: Scope | undefined): string {
  switch (scope?.kind.case) {
    case 'run':
      return `run ${scope.kind.value.tenant}/${scope.kind.value.runId}`;
    case 'agent': {
      const { tenant, runId, agentInstance } = scope.kind.value;
      return `agent ${tenant}/${runId}/${agentInstance}`;
    }
    case 'tenant':
      return `tenant ${scope.kind.value}`;
    default:
      return 'everything';
  }
}
