import { Badge } from '@mantine/core';
import { wordsOf } from '@writ/client/display';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { RunState } from '@writ/contracts/writ/run/v1/run_pb';

const RUN_COLORS: Partial<Record<RunState, string>> = {
  [RunState.RUNNING]: 'blue',
  [RunState.PENDING]: 'blue',
  [RunState.ENDING]: 'blue',
  [RunState.SUSPENDED]: 'yellow',
  [RunState.WAITING_FOR_INPUT]: 'yellow',
  [RunState.PARKED]: 'yellow',
  [RunState.PAUSED]: 'yellow',
  [RunState.COMPLETED]: 'green',
  [RunState.CANCELLED]: 'gray',
};

const APPROVAL_COLORS: Partial<Record<ApprovalState, string>> = {
  [ApprovalState.PENDING]: 'yellow',
  [ApprovalState.APPROVED]: 'green',
  [ApprovalState.RESOLVED]: 'green',
  [ApprovalState.REJECTED]: 'red',
};

/** The state of a run in words. */
export function RunStateBadge({ state }: { readonly state: RunState }) {
  return <WordBadge word={wordsOf(RunState, state)} color={RUN_COLORS[state] ?? 'red'} />;
}

/** The state of an approval in words. */
export function ApprovalStateBadge({ state }: { readonly state: ApprovalState }) {
  return (
    <WordBadge word={wordsOf(ApprovalState, state)} color={APPROVAL_COLORS[state] ?? 'gray'} />
  );
}

/** A word with a colored dot. The meaning does not depend on the color. */
export function WordBadge({ word, color }: { readonly word: string; readonly color: string }) {
  return (
    <Badge variant="dot" color={color} tt="none" fw={500} style={{ flexShrink: 0 }}>
      {word}
    </Badge>
  );
}
