import { wordOf, wordsOf } from '@writ/client/display';
import { type Run, RunState, RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { type Column, fields } from '../../output/table.ts';
import { timeText, usdText } from '../../output/text.ts';

/** Columns of a list of runs. */
export const RUN_COLUMNS: readonly Column<Run>[] = [
  { heading: 'RUN', text: ({ runId }) => runId },
  { heading: 'AGENT', text: ({ agent }) => agent?.name ?? '' },
  { heading: 'KIND', text: ({ kind }) => wordsOf(AgentKind, kind) },
  { heading: 'STATE', text: ({ state }) => wordsOf(RunState, state) },
  { heading: 'STARTED', text: ({ createTime }) => timeText(createTime) },
  {
    heading: 'COST',
    isNumber: true,
    text: ({ result }) => (result === undefined ? '' : usdText(result.usage?.costNanoUsd ?? 0n)),
  },
  { heading: 'GOAL', text: ({ goal }) => goal },
];

/** Returns the fields of a run without its steps. */
export function runFields(run: Run): string[] {
  const { result } = run;
  return fields({
    run: run.runId,
    agent: `${run.agent?.name ?? ''} (${run.agent?.instance ?? ''})`,
    kind: wordsOf(AgentKind, run.kind),
    state: wordsOf(RunState, run.state),
    goal: run.goal,
    'started by': `${run.createdBy} in tenant ${run.tenant}`,
    session: run.sessionId,
    trace: run.traceId,
    started: timeText(run.createTime),
    deadline: timeText(run.deadline),
    ended: timeText(run.endTime),
    labels: Object.entries(run.labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(', '),
    ...(result && {
      status: wordOf(RunStatus, result.status),
      'stop reason': [result.stopReason, result.phase].filter((text) => text !== '').join(' in '),
      detail: result.detail,
      cost: usdText(result.usage?.costNanoUsd ?? 0n),
      answer: result.answer,
    }),
  });
}
