import { Alert, Anchor, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { printable, shortAction } from '@writ/client/display';
import {
  type Approval,
  ApprovalKind,
  ApprovalState,
} from '@writ/contracts/writ/approval/v1/approval_pb';
import { useMemo } from 'react';
import { Link, useSearchParams } from 'react-router';
import { usePendingApprovals } from '../../api/pending-approvals.tsx';
import { LiveBadge } from '../../parts/live-badge.tsx';
import { EmptyNotice, ErrorNotice, Loading } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { ApprovalStateBadge } from '../../parts/state-badge.tsx';
import { localTime } from '../../parts/times.ts';
import { Cell, VirtualList } from '../../parts/virtual-list.tsx';
import { useApi } from '../../session/session-provider.tsx';

const DECIDED = [
  ApprovalState.APPROVED,
  ApprovalState.REJECTED,
  ApprovalState.EXPIRED,
  ApprovalState.WITHDRAWN,
  ApprovalState.RESOLVED,
];

/** The list of approvals: the pending approvals, updated live, or the decided approvals. */
export function ApprovalsPage() {
  const [params, setParams] = useSearchParams();
  const pending = usePendingApprovals();
  const runId = params.get('run') ?? '';
  const isDecided = params.get('show') === 'decided';
  const decided = useDecided(runId, isDecided);
  const waiting = useMemo(
    () => pending.approvals?.filter((approval) => runId === '' || approval.runId === runId),
    [pending.approvals, runId],
  );
  const rows = isDecided ? decided.data : waiting;
  const isCurrent = isDecided || pending.isLive;
  const hasFailed = isDecided ? decided.isError : pending.error !== undefined;
  const count = pending.isLive ? waiting?.length : undefined;
  return (
    <Page
      title="Approvals"
      about={runId === '' ? 'Actions that a person decides' : `Approvals of run ${runId}`}
      actions={
        <>
          <LiveBadge isLive={pending.isLive} error={pending.error} />
          <SegmentedControl
            aria-label="Which approvals"
            value={isDecided ? 'decided' : 'waiting'}
            onChange={(show) => setParams({ ...(runId && { run: runId }), show })}
            data={[
              { value: 'waiting', label: count === undefined ? 'Waiting' : `Waiting (${count})` },
              { value: 'decided', label: 'Decided' },
            ]}
          />
        </>
      }
    >
      <Title order={2} className="visually-hidden">
        {isDecided ? 'Decided approvals' : 'Waiting approvals'}
      </Title>
      {pending.error !== undefined && <ErrorNotice error={pending.error} />}
      {decided.error !== null && <ErrorNotice error={decided.error} onRetry={decided.refetch} />}
      {rows !== undefined && !isCurrent && (
        <Alert color="yellow" role="note">
          Not connected. This list may be out of date.
        </Alert>
      )}
      {rows === undefined && !hasFailed && <Loading />}
      {rows?.length === 0 && isCurrent && (
        <EmptyNotice title={isDecided ? 'No approval was decided yet' : 'Nothing waits for you'}>
          {isDecided ? undefined : 'New approvals appear here at once.'}
        </EmptyNotice>
      )}
      {rows !== undefined && rows.length > 0 && (
        <VirtualList
          label="Approvals"
          rows={rows}
          keyOf={(approval) => approval.approvalId}
          rowHeight={74}
          columns={[{ name: 'Action' }, { name: 'State' }, { name: 'Agent' }, { name: 'Opened' }]}
          template="minmax(0, 3fr) 150px minmax(90px, 1fr) 190px"
          renderRow={(approval) => <ApprovalRow approval={approval} />}
        />
      )}
    </Page>
  );
}

function ApprovalRow({ approval }: { readonly approval: Approval }) {
  const { approvalId, kind, action, reason, state, agent, humanApproval } = approval;
  const text = action === undefined ? approvalId : shortAction(action);
  return (
    <>
      <Cell>
        <Stack gap={2}>
          <Anchor component={Link} to={`/approvals/${approvalId}`} size="sm" className="clip">
            {printable(kind === ApprovalKind.RESOLVE ? `was this call executed? ${text}` : text)}
          </Anchor>
          <Text size="sm" className="clip muted">
            {reason}
          </Text>
        </Stack>
      </Cell>
      <Cell>
        <ApprovalStateBadge state={state} />
        {humanApproval !== undefined && (
          <Text size="xs" className="muted clip">
            by {printable(humanApproval.decidedBy)}
          </Text>
        )}
      </Cell>
      <Cell className="clip">{agent?.name}</Cell>
      <Cell className="muted">{localTime(approval.createTime)}</Cell>
    </>
  );
}

/** Maximum number of decided approvals that the page lists. */
const MAX_DECIDED = 200;

function useDecided(runId: string, isEnabled: boolean) {
  const api = useApi();
  return useQuery({
    queryKey: ['approvals', 'decided', runId],
    enabled: isEnabled,
    queryFn: async ({ signal }) => {
      const request = { states: DECIDED, runId, pageSize: MAX_DECIDED };
      return (await api.approvals.listApprovals(request, { signal })).approvals;
    },
  });
}
