import { Anchor, Group, MultiSelect, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { printable, usdText, wordsOf } from '@writ/client/display';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { useCallback, useMemo } from 'react';
import { Link } from 'react-router';
import { LiveBadge } from '../../parts/live-badge.tsx';
import { EmptyNotice, ErrorNotice, Loading } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { RunStateBadge } from '../../parts/state-badge.tsx';
import { localTime } from '../../parts/times.ts';
import { Cell, VirtualList } from '../../parts/virtual-list.tsx';
import { useSession } from '../../session/session-provider.tsx';
import classes from './runs-page.module.css';
import { STATES, useLiveRuns, useRunFilter, useRuns } from './use-runs.ts';

const COLUMNS = [
  { name: 'Run' },
  { name: 'State' },
  { name: 'Agent' },
  { name: 'Session' },
  { name: 'Started' },
  { name: 'Cost' },
];

/** The runs of the tenant, newest first. */
export function RunsPage() {
  const { caller } = useSession();
  const [filter, setFilter] = useRunFilter();
  const [settled] = useDebouncedValue(filter, 250);
  const runs = useRuns(settled);
  const live = useLiveRuns(settled);
  const rows = useMemo(() => runs.data?.pages.flatMap((page) => page.runs) ?? [], [runs.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = runs;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const isFiltered = filter.states.length > 0 || filter.agent !== '' || filter.session !== '';
  return (
    <Page
      title="Runs"
      about={`Tenant ${caller?.tenant ?? ''}${rows.length > 0 ? `, ${rows.length}${hasNextPage ? '+' : ''} ${rows.length === 1 ? 'run' : 'runs'} listed` : ''}`}
      actions={<LiveBadge isLive={live.isLive} error={live.error} />}
    >
      <Group gap="sm" align="flex-end">
        <MultiSelect
          label="State"
          placeholder={filter.states.length === 0 ? 'every state' : ''}
          data={[...STATES.keys()]}
          value={[...filter.states]}
          onChange={(states) => setFilter({ ...filter, states })}
          clearable
          searchable
          className={classes.states}
        />
        <TextInput
          label="Agent"
          placeholder="every agent"
          value={filter.agent}
          onChange={(event) => setFilter({ ...filter, agent: event.currentTarget.value })}
          className={classes.filter}
        />
        <TextInput
          label="Session"
          placeholder="every session"
          value={filter.session}
          onChange={(event) => setFilter({ ...filter, session: event.currentTarget.value })}
          className={classes.filter}
        />
      </Group>
      {live.error !== undefined && <ErrorNotice error={live.error} />}
      {runs.error !== null && <ErrorNotice error={runs.error} onRetry={runs.refetch} />}
      {runs.isPending && <Loading />}
      {runs.isSuccess && rows.length === 0 && (
        <EmptyNotice title={isFiltered ? 'No run matches the filters' : 'No runs yet'}>
          {isFiltered
            ? 'Remove a filter to list more runs.'
            : 'Start one with `writ run`, or with RunService of the API.'}
        </EmptyNotice>
      )}
      {rows.length > 0 && (
        <VirtualList
          label="Runs"
          rows={rows}
          keyOf={(run) => run.runId}
          rowHeight={61}
          columns={COLUMNS}
          template="minmax(0, 3fr) 150px minmax(120px, 1fr) minmax(80px, 0.7fr) 196px 110px"
          onEnd={onEnd}
          renderRow={(run) => <RunRow run={run} />}
        />
      )}
    </Page>
  );
}

function RunRow({ run }: { readonly run: Run }) {
  const cost = run.result?.usage?.costNanoUsd;
  return (
    <>
      <Cell>
        <Anchor component={Link} to={`/runs/${run.runId}`} className="mono" size="sm">
          {run.runId}
        </Anchor>
        <Text size="sm" className="clip muted" title={printable(run.goal)}>
          {run.goal === ''
            ? 'Goal deleted by the retention policy of the run'
            : printable(run.goal)}
        </Text>
      </Cell>
      <Cell>
        <RunStateBadge state={run.state} />
      </Cell>
      <Cell>
        <Text size="sm" className="clip">
          {run.agent?.name}
        </Text>
        <Text size="xs" className="clip muted">
          {wordsOf(AgentKind, run.kind)}
        </Text>
      </Cell>
      <Cell className={`clip mono ${classes.wide}`}>{run.sessionId}</Cell>
      <Cell className={`muted ${classes.started}`}>{localTime(run.createTime)}</Cell>
      <Cell className={classes.cost}>{cost === undefined ? '' : usdText(cost)}</Cell>
    </>
  );
}
