import { timestampDate } from '@bufbuild/protobuf/wkt';
import { haltStateText, scopeText } from '@writ/client/display';
import type { Halt } from '@writ/contracts/writ/control/v1/control_service_pb';

/** A halt in one line, and a line for each call that is still in flight. */
export function haltLines(halt: Halt): string[] {
  return [
    haltLine(halt),
    ...halt.inFlight.map(
      (call) =>
        `  still in flight: ${call.runId} ${call.agentInstance} ${call.callId} ${call.target}`,
    ),
  ];
}

/** A halt in one line: id, state, scope, operator, time and reason. */
function haltLine(halt: Halt): string {
  const at = halt.createTime === undefined ? '' : timestampDate(halt.createTime).toISOString();
  const by = halt.resumedBy === '' ? '' : `, lifted by ${halt.resumedBy}`;
  const ends = halt.endRuns ? ', ends runs' : '';
  return [
    halt.haltId,
    `${haltStateText(halt.state)}${by}`,
    `${scopeText(halt.scope)}${ends}`,
    `by ${halt.orderedBy} at ${at}`,
    halt.reason,
  ].join('  ');
}
