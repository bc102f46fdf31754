import { Alert, Anchor, Grid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { printable, shortAction } from '@writ/client/display';
import {
  type Approval,
  ApprovalKind,
  ApprovalState,
} from '@writ/contracts/writ/approval/v1/approval_pb';
import type { ReactNode } from 'react';
import { Link, useParams } from 'react-router';
import { ErrorNotice, Loading } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Section } from '../../parts/section.tsx';
import { CopyId, ShownJson, ShownText } from '../../parts/shown-text.tsx';
import { ApprovalStateBadge } from '../../parts/state-badge.tsx';
import { localTime } from '../../parts/times.ts';
import { useSession } from '../../session/session-provider.tsx';
import { ApprovalEvidence } from './approval-evidence.tsx';
import { DecideForm } from './decide-form.tsx';
import { ResolveForm } from './resolve-form.tsx';

/** One approval: the exact action, why it was escalated, the evidence, and the decision. */
export function ApprovalPage() {
  const { approvalId = '' } = useParams();
  const { api } = useSession();
  const query = useQuery({
    queryKey: ['approval', approvalId],
    queryFn: async ({ signal }) =>
      (await api.approvals.getApproval({ approvalId }, { signal })).approval ?? null,
  });
  if (query.isPending) return <Loading />;
  if (query.error !== null || query.data === null) {
    return (
      <Page title="Approval">
        <ErrorNotice
          error={query.error ?? new Error('The approval was not returned.')}
          onRetry={query.refetch}
        />
      </Page>
    );
  }
  const approval = query.data;
  return (
    <Page
      title={approval.kind === ApprovalKind.RESOLVE ? 'Was this call executed?' : titleOf(approval)}
      about={<CopyId id={approval.approvalId} />}
      actions={<ApprovalStateBadge state={approval.state} />}
    >
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Stack>
            <Section title="Action">
              <ActionDetails approval={approval} />
            </Section>
            <Decision approval={approval} />
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Stack>
            <Section title="Why a person decides">
              <Facts approval={approval} />
            </Section>
            {approval.evidence !== undefined && (
              <Section title="Evidence">
                <ApprovalEvidence evidence={approval.evidence} />
              </Section>
            )}
          </Stack>
        </Grid.Col>
      </Grid>
    </Page>
  );
}

function titleOf({ action }: Approval): string {
  switch (action?.kind.case) {
    case 'tool':
    case 'clientTool':
      return `Approve ${printable(action.kind.value.tool)}?`;
    case 'delegation':
      return `Approve the handoff to ${printable(action.kind.value.agent)}?`;
    case 'final':
      return 'Approve the final answer?';
    case undefined:
      return 'Approval';
  }
}

function ActionDetails({ approval: { action } }: { readonly approval: Approval }) {
  if (action === undefined) return <Text size="sm">The action was deleted by its retention.</Text>;
  const { kind } = action;
  if (kind.case === 'tool' || kind.case === 'clientTool') {
    return (
      <>
        <Text fw={600} className="mono" mb={6}>
          {printable(kind.value.tool)}
        </Text>
        <ShownJson json={kind.value.argumentsJson} />
        {kind.case === 'clientTool' && (
          <Text size="sm" c="dimmed" mt={6}>
            The program of the agent executes this call itself. Writ gives it no credential and
            cannot prove what it did.
          </Text>
        )}
      </>
    );
  }
  return <ShownText>{shortAction(action)}</ShownText>;
}

function Decision({ approval }: { readonly approval: Approval }) {
  const { can } = useSession();
  const { humanApproval: human, executedAction } = approval;
  if (approval.state === ApprovalState.PENDING) {
    if (!can('writ.approval.v1.ApprovalService/DecideApproval')) {
      return (
        <Alert color="blue" role="note">
          Your roles permit reading approvals, not deciding them.
        </Alert>
      );
    }
    return approval.kind === ApprovalKind.RESOLVE ? (
      <ResolveForm key={approval.approvalId} approval={approval} />
    ) : (
      <DecideForm key={approval.approvalId} approval={approval} />
    );
  }
  if (human === undefined) return null;
  return (
    <Section title="Decision">
      <Stack gap={6}>
        <Text size="sm">
          {human.approved ? 'Approved' : 'Rejected'} by {printable(human.decidedBy)},{' '}
          {localTime(human.decideTime)}
          {human.basis === '' ? '' : ` (${human.basis})`}
        </Text>
        {human.comment !== '' && <ShownText>{human.comment}</ShownText>}
        {executedAction !== undefined && (
          <Text size="sm">
            Executed: <ShownText>{shortAction(executedAction)}</ShownText>
          </Text>
        )}
      </Stack>
    </Section>
  );
}

function Facts({ approval }: { readonly approval: Approval }) {
  const { can } = useSession();
  const facts: readonly (readonly [string, ReactNode])[] = [
    ['reason', <ShownText key="reason">{approval.reason}</ShownText>],
    ['rule', `${approval.ruleId} (risk ${approval.risk})`],
    ['agent', `${approval.agent?.name ?? ''}, step ${approval.step}`],
    [
      'run',
      can('writ.run.v1.RunService/GetRun') ? (
        <Anchor key="run" component={Link} to={`/runs/${approval.runId}`} className="mono">
          {approval.runId}
        </Anchor>
      ) : (
        <span key="run" className="mono">
          {approval.runId}
        </span>
      ),
    ],
    ['started by', approval.runCreatedBy],
    ['opened', localTime(approval.createTime)],
    ['expires', localTime(approval.expireTime) || 'never'],
  ];
  return (
    <dl style={{ display: 'grid', gridTemplateColumns: '92px minmax(0, 1fr)', gap: 6, margin: 0 }}>
      {facts.map(([name, value]) => (
        <div key={name} style={{ display: 'contents' }}>
          <Text component="dt" size="sm" className="muted">
            {name}
          </Text>
          <Text component="dd" size="sm" m={0} style={{ overflowWrap: 'anywhere' }}>
            {value}
          </Text>
        </div>
      ))}
    </dl>
  );
}
