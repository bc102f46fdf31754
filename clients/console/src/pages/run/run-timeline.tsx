import { toJsonString } from '@bufbuild/protobuf';
import { Button, Drawer, Text } from '@mantine/core';
import { printable, timeText } from '@writ/client/display';
import { type RunEvent, RunEventSchema } from '@writ/contracts/writ/run/v1/run_pb';
import { useState } from 'react';
import { ShownJson } from '../../parts/shown-text.tsx';
import { localClock } from '../../parts/times.ts';
import { Cell, VirtualList } from '../../parts/virtual-list.tsx';
import classes from './run-timeline.module.css';
import type { RunModel, TimelineEntry } from './timeline.ts';

const COLUMNS = [{ name: 'Step' }, { name: 'Event' }, { name: 'Agent' }, { name: 'Time' }];
const GOOD = ['approve', 'approved', 'executed'];
const BAD = ['block', 'rejected', 'invalid', 'halted', 'budget'];
const WAITS = ['escalate', 'waits', 'paused', 'revise', 'revised', 'edited'];

/** The events of a run in causal order: proposals, decisions, approvals, executed calls. */
export function RunTimeline({
  model,
  isLive,
}: {
  readonly model: RunModel;
  readonly isLive: boolean;
}) {
  const [shown, setShown] = useState<RunEvent>();
  if (model.entries.length === 0) {
    return (
      <Text size="sm" className="muted">
        {isLive ? 'No step yet.' : 'Waiting for the timeline.'}
      </Text>
    );
  }
  return (
    <>
      <VirtualList
        label="Timeline"
        rows={model.entries}
        keyOf={({ event }) => String(event.sequence)}
        rowHeight={58}
        columns={COLUMNS}
        template="40px minmax(0, 1fr) 120px 96px"
        height="max(420px, calc(100dvh - 380px))"
        followEnd={!model.isEnded}
        renderRow={(entry) => <Row entry={entry} onShow={setShown} />}
      />
      <Drawer
        opened={shown !== undefined}
        onClose={() => setShown(undefined)}
        position="right"
        size="lg"
        title={`Event ${shown?.sequence ?? ''}`}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {shown !== undefined && (
          <>
            <Text size="sm" className="muted" mb="xs">
              {timeText(shown.recordTime)}, agent {shown.agent?.instance}
            </Text>
            <ShownJson json={toJsonString(RunEventSchema, shown)} />
          </>
        )}
      </Drawer>
    </>
  );
}

function Row({
  entry: { event, lines },
  onShow,
}: {
  readonly entry: TimelineEntry;
  readonly onShow: (event: RunEvent) => void;
}) {
  return (
    <>
      <Cell className={`muted ${classes.step}`}>{stepOf(event)}</Cell>
      <Cell className={classes.lines}>
        {lines.map(({ label, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the lines of an event never change.
          <div key={index} className={classes.line}>
            <span className={`${classes.label} ${classes[toneOf(label)] ?? ''}`}>{label}</span>
            <span className="untrusted">{clipped(printable(text))}</span>
          </div>
        ))}
      </Cell>
      <Cell className={`muted clip ${classes.agent}`}>{event.agent?.name}</Cell>
      <Cell>
        <Button
          variant="subtle"
          color="gray"
          size="compact-xs"
          onClick={() => onShow(event)}
          aria-label={`${localClock(event.recordTime)}, details of event ${event.sequence}`}
          className={classes.time}
        >
          {localClock(event.recordTime)}
        </Button>
      </Cell>
    </>
  );
}

/** Maximum length of a line, in characters; the details show the complete text. */
const MAX_LINE = 600;

function clipped(text: string): string {
  return text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}… (in the details)` : text;
}

function stepOf({ entry }: RunEvent): string {
  if (entry.case !== 'hook' && entry.case !== 'decision') return '';
  return entry.value.step === 0 ? '' : String(entry.value.step);
}

function toneOf(label: string): 'good' | 'bad' | 'waits' | 'plain' {
  if (GOOD.includes(label)) return 'good';
  if (BAD.includes(label)) return 'bad';
  return WAITS.includes(label) ? 'waits' : 'plain';
}
