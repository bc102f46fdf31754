import { Button, Card, Group, SegmentedControl, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { haltStateText, printable, scopeText } from '@writ/client/display';
import { type Halt, HaltState } from '@writ/contracts/writ/control/v1/control_service_pb';
import { OctagonPause } from 'lucide-react';
import { useState } from 'react';
import { newRequestId } from '../../api/ids.ts';
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx';
import { EmptyNotice, ErrorNotice, Loading } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { CopyId, ShownText } from '../../parts/shown-text.tsx';
import { WordBadge } from '../../parts/state-badge.tsx';
import { localTime } from '../../parts/times.ts';
import { useSession } from '../../session/session-provider.tsx';
import { HaltDialog } from './halt-dialog.tsx';

const PAGE_SIZE = 200;

/** The halts of the tenant: order, list, lift. */
export function HaltsPage() {
  const { api, can, caller } = useSession();
  const [isAll, setAll] = useState(false);
  const [isOrdering, setOrdering] = useState(false);
  const [lifted, setLifted] = useState<Halt>();
  const halts = useInfiniteQuery({
    queryKey: ['halts', isAll],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      api.control.listHalts(
        { inForceOnly: !isAll, pageSize: PAGE_SIZE, pageToken: pageParam },
        { signal },
      ),
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
  const cards = halts.data?.pages.flatMap((page) => page.halts);
  const mayHalt = can('writ.control.v1.ControlService/Halt');
  const mayLift = can('writ.control.v1.ControlService/Resume');
  return (
    <Page
      title="Halts"
      about="A halt stops model calls and tool calls at once, until it is lifted"
      actions={
        <>
          <SegmentedControl
            aria-label="Which halts"
            value={isAll ? 'all' : 'in force'}
            onChange={(which) => setAll(which === 'all')}
            data={['in force', 'all']}
          />
          {mayHalt && (
            <Button
              color="red"
              leftSection={<OctagonPause size={16} />}
              onClick={() => setOrdering(true)}
            >
              Halt
            </Button>
          )}
        </>
      }
    >
      {halts.error !== null && <ErrorNotice error={halts.error} onRetry={halts.refetch} />}
      {halts.isPending && <Loading />}
      {cards?.length === 0 && (
        <EmptyNotice title={isAll ? 'No halt was ordered yet' : 'No halt is in force'} />
      )}
      {cards?.map((halt) => (
        <HaltCard
          key={halt.haltId}
          halt={halt}
          onLift={mayLift ? () => setLifted(halt) : undefined}
        />
      ))}
      {halts.hasNextPage && (
        <Group justify="center">
          <Button
            variant="default"
            loading={halts.isFetchingNextPage}
            onClick={() => void halts.fetchNextPage()}
          >
            Load older halts
          </Button>
        </Group>
      )}
      <HaltDialog
        isOpen={isOrdering}
        onClose={() => setOrdering(false)}
        initialScope={{ kind: 'tenant', tenant: caller?.tenant ?? '', runId: '', instance: '' }}
      />
      <LiftDialog halt={lifted} onClose={() => setLifted(undefined)} />
    </Page>
  );
}

function HaltCard({ halt, onLift }: { readonly halt: Halt; readonly onLift?: () => void }) {
  const isOver = halt.state === HaltState.RESUMED;
  return (
    <Card withBorder component="article" aria-label={`Halt of ${scopeText(halt.scope)}`}>
      <Group justify="space-between" align="flex-start">
        <div style={{ minWidth: 0, flex: '1 1 240px' }}>
          <Group gap="xs">
            <Text fw={600} style={{ overflowWrap: 'anywhere' }}>
              {scopeText(halt.scope)}
            </Text>
            <WordBadge word={haltStateText(halt.state)} color={isOver ? 'gray' : 'red'} />
            {halt.endRuns && <WordBadge word="ends runs" color="red" />}
          </Group>
          <Text size="sm" mt={4} component="div">
            <ShownText>{halt.reason}</ShownText>
          </Text>
          <Text size="xs" className="muted" mt={4}>
            by {printable(halt.orderedBy)}, {localTime(halt.createTime)}
            {halt.resumedBy === ''
              ? ''
              : `; lifted by ${printable(halt.resumedBy)}, ${localTime(halt.resumeTime)}`}
          </Text>
          <Text size="xs" className="muted" component="div">
            <CopyId id={halt.haltId} />
          </Text>
          {halt.inFlight.length > 0 && (
            <Text size="xs" className="muted">
              Still in flight: {halt.inFlight.map(({ target }) => printable(target)).join(', ')}
            </Text>
          )}
        </div>
        {!isOver && onLift !== undefined && (
          <Button variant="default" onClick={onLift}>
            Lift
          </Button>
        )}
      </Group>
    </Card>
  );
}

function LiftDialog({
  halt,
  onClose,
}: {
  readonly halt: Halt | undefined;
  readonly onClose: () => void;
}) {
  const { api } = useSession();
  const queries = useQueryClient();
  const lift = useMutation({
    mutationFn: (haltId: string) => api.control.resume({ requestId: newRequestId(), haltId }),
    onSuccess: () => {
      notifications.show({ message: 'The halt is lifted.' });
      void queries.invalidateQueries();
    },
  });
  return (
    <ConfirmDialog
      title="Lift the halt"
      isOpen={halt !== undefined}
      onClose={onClose}
      action={lift}
      onConfirm={() => halt !== undefined && lift.mutate(halt.haltId, { onSuccess: onClose })}
      explanation={`Agents in ${scopeText(halt?.scope)} that have not ended continue where they stopped, unless another halt covers them.`}
    />
  );
}
