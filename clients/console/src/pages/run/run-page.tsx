import { Anchor, Button, Card, Grid, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { timeText, usdText, wordOf, wordsOf } from '@writ/client/display';
import { type Run, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { ExternalLink } from 'lucide-react';
import { Link, useParams } from 'react-router';
import { LiveBadge } from '../../parts/live-badge.tsx';
import { ErrorNotice, Loading } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Section } from '../../parts/section.tsx';
import { CopyId, ShownText } from '../../parts/shown-text.tsx';
import { RunStateBadge } from '../../parts/state-badge.tsx';
import { localTime } from '../../parts/times.ts';
import { useSession } from '../../session/session-provider.tsx';
import { BudgetGauges } from './budget-gauges.tsx';
import { RunActions } from './run-actions.tsx';
import { RunCost } from './run-cost.tsx';
import { RunTimeline } from './run-timeline.tsx';
import { RunTree } from './run-tree.tsx';
import type { RunModel } from './timeline.ts';
import { useLiveRun, useRun, useRunUsage } from './use-run.ts';

/** One run: its tree, timeline, budgets and cost, live. */
export function RunPage() {
  const { runId = '' } = useParams();
  const run = useRun(runId);
  const live = useLiveRun(runId);
  if (run.isPending) return <Loading />;
  if (run.error !== null || run.data === null) {
    return (
      <Page title="Run">
        <ErrorNotice
          error={run.error ?? new Error('The run was not returned.')}
          onRetry={run.refetch}
        />
      </Page>
    );
  }
  const { data } = run;
  return (
    <Page
      title={`Run of ${data.agent?.name ?? ''}`}
      about={<CopyId id={data.runId} />}
      actions={
        <>
          {!live.model.isEnded && <LiveBadge isLive={live.isLive} error={live.error} />}
          <RunStateBadge state={data.state} />
          <TraceLink run={data} />
          <RunActions run={data} />
        </>
      }
    >
      {live.error !== undefined && <ErrorNotice error={live.error} />}
      {data.waitingDetail !== '' && <ErrorNotice error={new Error(data.waitingDetail)} />}
      {(data.state === RunState.SUSPENDED || waitsForPerson(live.model)) && (
        <WaitsForPerson runId={data.runId} />
      )}
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 8 }}>
          <Stack>
            <RunOutcome run={data} />
            <Section title="Timeline">
              <RunTimeline model={live.model} isLive={live.isLive} />
            </Section>
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          <Stack>
            <Section title="Agents">
              <RunTree runId={runId} model={live.model} />
            </Section>
            <Section title="Budgets">
              <RunBudgets runId={runId} />
            </Section>
            <Section title="Cost over time">
              <RunCost model={live.model} />
            </Section>
            <Section title="About this run">
              <Facts run={data} />
            </Section>
          </Stack>
        </Grid.Col>
      </Grid>
    </Page>
  );
}

function TraceLink({ run }: { readonly run: Run }) {
  const { config } = useSession();
  if (config.trace_url === undefined || run.traceId === '') return null;
  return (
    <Button
      component="a"
      variant="default"
      href={config.trace_url.replace('{trace_id}', encodeURIComponent(run.traceId))}
      target="_blank"
      rel="noreferrer"
      leftSection={<ExternalLink size={16} />}
    >
      Trace
    </Button>
  );
}

function waitsForPerson({ isEnded, openApprovals }: RunModel): boolean {
  return !isEnded && openApprovals.size > 0;
}

function WaitsForPerson({ runId }: { readonly runId: string }) {
  const { can } = useSession();
  if (!can('writ.approval.v1.ApprovalService/ListApprovals')) return null;
  return (
    <Text size="sm">
      This run waits.{' '}
      <Anchor component={Link} to={`/approvals?run=${runId}`}>
        Approvals of this run
      </Anchor>
    </Text>
  );
}

function RunOutcome({ run }: { readonly run: Run }) {
  const { result } = run;
  return (
    <Card withBorder>
      <Text size="xs" className="muted">
        Goal
      </Text>
      <ShownText>
        {run.goal === '' ? 'Deleted by the retention policy of the run.' : run.goal}
      </ShownText>
      {result !== undefined && (
        <>
          <Text size="xs" className="muted" mt="sm">
            {result.answer === '' ? 'Outcome' : 'Answer'}
          </Text>
          <ShownText>
            {result.answer !== '' ? result.answer : result.detail || result.stopReason}
          </ShownText>
        </>
      )}
    </Card>
  );
}

function Facts({ run }: { readonly run: Run }) {
  const { result } = run;
  const facts: Readonly<Record<string, string>> = {
    kind: wordsOf(AgentKind, run.kind),
    'started by': run.createdBy,
    tenant: run.tenant,
    session: run.sessionId,
    priority: wordOf(Priority, run.priority).replace('priority_unspecified', 'normal'),
    started: localTime(run.createTime),
    deadline: localTime(run.deadline),
    ended: localTime(run.endTime),
    ...(result && {
      'stop reason': [result.stopReason, result.phase].filter((text) => text !== '').join(' in '),
      cost: usdText(result.usage?.costNanoUsd ?? 0n),
    }),
    labels: Object.entries(run.labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(', '),
    trace: run.traceId,
    'deleted at': timeText(run.purgeTime),
  };
  return (
    <SimpleGrid component="dl" cols={1} spacing={6} m={0}>
      {Object.entries(facts)
        .filter(([, text]) => text !== '')
        .map(([name, text]) => (
          <Group key={name} gap="xs" wrap="nowrap" align="baseline">
            <Text component="dt" size="sm" className="muted" w={96} style={{ flexShrink: 0 }}>
              {name}
            </Text>
            <Text component="dd" size="sm" m={0} style={{ overflowWrap: 'anywhere' }}>
              <ShownText>{text}</ShownText>
            </Text>
          </Group>
        ))}
    </SimpleGrid>
  );
}

/** The balances of a run as gauges: settled, reserved, left. */
function RunBudgets({ runId }: { readonly runId: string }) {
  const usage = useRunUsage(runId);
  const levels = usage.data?.levels ?? [];
  if (levels.length === 0) {
    return (
      <Text size="sm" className="muted">
        {usage.isPending && usage.fetchStatus === 'idle'
          ? 'Your roles do not permit reading usage.'
          : 'No budget to show: the run has not started, or its usage cannot be read.'}
      </Text>
    );
  }
  return (
    <Stack gap="md">
      {levels.map((balance) => (
        <BudgetGauges key={balance.level} balance={balance} />
      ))}
    </Stack>
  );
}
