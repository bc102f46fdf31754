import { Anchor, Button, Card, Group, Select, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { printable, wordOf } from '@writ/client/display';
import { type Run, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { type Slot, SlotState } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { Priority } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { RefreshCw } from 'lucide-react';
import { Link } from 'react-router';
import { newRequestId } from '../../api/ids.ts';
import { EmptyNotice, ErrorNotice, Loading } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { RunStateBadge, WordBadge } from '../../parts/state-badge.tsx';
import { localTime } from '../../parts/times.ts';
import { useSession } from '../../session/session-provider.tsx';
import { useRunPool } from '../run/use-run.ts';

const OPEN = [RunState.RUNNING, RunState.SUSPENDED, RunState.PARKED, RunState.WAITING_FOR_INPUT];
/** Maximum number of runs whose pools the page reads. */
const MAX_RUNS = 30;
const PRIORITIES = [
  Priority.BACKGROUND,
  Priority.LOW,
  Priority.NORMAL,
  Priority.HIGH,
  Priority.CRITICAL,
].map((priority) => ({ value: String(priority), label: wordOf(Priority, priority) }));
const SLOT_COLORS: Partial<Record<SlotState, string>> = {
  [SlotState.ACTIVE]: 'blue',
  [SlotState.SUSPENDED]: 'yellow',
  [SlotState.PAUSED]: 'orange',
  [SlotState.WAITING]: 'yellow',
};

/** Shows the slots of the runs in progress: which agents hold a slot, lost it, or wait for one. */
export function PoolsPage() {
  const { api } = useSession();
  const runs = useQuery({
    queryKey: ['runs', 'open'],
    queryFn: async ({ signal }) =>
      (await api.runs.listRuns({ states: OPEN, pageSize: MAX_RUNS }, { signal })).runs,
  });
  const queries = useQueryClient();
  return (
    <Page
      title="Pools"
      about={`Slots and preemptions of the ${MAX_RUNS} newest runs in progress`}
      actions={
        <Button
          variant="default"
          leftSection={<RefreshCw size={16} />}
          loading={runs.isRefetching}
          onClick={() => void queries.invalidateQueries()}
        >
          Refresh
        </Button>
      }
    >
      {runs.error !== null && <ErrorNotice error={runs.error} onRetry={runs.refetch} />}
      {runs.isPending && <Loading />}
      {runs.data?.length === 0 && (
        <EmptyNotice title="No run is in progress">
          A pool exists from the start of a run to its end.
        </EmptyNotice>
      )}
      {runs.data?.map((run) => (
        <PoolCard key={run.runId} run={run} />
      ))}
    </Page>
  );
}

function PoolCard({ run }: { readonly run: Run }) {
  const pool = useRunPool(run.runId);
  const { holders = [], paused = [], waiting = [] } = pool.data ?? {};
  const slots = [...holders, ...paused, ...waiting];
  return (
    <Card withBorder component="section" aria-label={`Pool of ${run.runId}`}>
      <Group justify="space-between">
        <Anchor component={Link} to={`/runs/${run.runId}`} className="mono" size="sm">
          {run.runId}
        </Anchor>
        <RunStateBadge state={run.state} />
      </Group>
      {pool.error !== null && <ErrorNotice error={pool.error} />}
      {pool.data && (
        <>
          <SimpleGrid cols={{ base: 2, sm: 4 }} my="sm" spacing="xs">
            <Figure
              name="held"
              text={`${pool.data.held} of ${pool.data.budget?.maxAgents ?? '∞'}`}
            />
            <Figure name="spawned" text={String(pool.data.totalSpawns)} />
            <Figure name="preempted" text={String(pool.data.totalPauses)} />
            <Figure name="refused" text={String(pool.data.totalRefusals)} />
          </SimpleGrid>
          <Table.ScrollContainer minWidth={270} type="native">
            <Table verticalSpacing={6}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>agent</Table.Th>
                  <Table.Th visibleFrom="sm">slot</Table.Th>
                  <Table.Th>priority</Table.Th>
                  <Table.Th visibleFrom="sm">waits for</Table.Th>
                  <Table.Th visibleFrom="sm">since</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {slots.map((slot) => (
                  <SlotRow key={slot.agent?.instance} run={run} slot={slot} />
                ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </>
      )}
    </Card>
  );
}

function Figure({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div>
      <Text size="xs" className="muted">
        {name}
      </Text>
      <Text fw={600}>{text}</Text>
    </div>
  );
}

function SlotRow({ run, slot }: { readonly run: Run; readonly slot: Slot }) {
  const { can } = useSession();
  const state = (
    <WordBadge word={wordOf(SlotState, slot.state)} color={SLOT_COLORS[slot.state] ?? 'gray'} />
  );
  const waitsFor = printable(slot.waitingFor.join(', '));
  const since = localTime(slot.waitTime ?? slot.acquireTime);
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm">{slot.agent?.name}</Text>
        <Text size="xs" className="muted mono">
          {slot.agent?.instance}
        </Text>
        <Stack hiddenFrom="sm" gap={4} mt={4}>
          <div>{state}</div>
          {waitsFor !== '' && <Text size="xs">waits for {waitsFor}</Text>}
          <Text size="xs" className="muted">
            since {since}
          </Text>
        </Stack>
      </Table.Td>
      <Table.Td miw={140} visibleFrom="sm">
        {state}
      </Table.Td>
      <Table.Td>
        {can('writ.control.v1.ControlService/Reprioritize') ? (
          <PrioritySelect run={run} slot={slot} />
        ) : (
          wordOf(Priority, slot.priority)
        )}
      </Table.Td>
      <Table.Td visibleFrom="sm">{waitsFor}</Table.Td>
      <Table.Td className="muted" visibleFrom="sm" style={{ whiteSpace: 'nowrap' }}>
        {since}
      </Table.Td>
    </Table.Tr>
  );
}

function PrioritySelect({ run, slot }: { readonly run: Run; readonly slot: Slot }) {
  const { api } = useSession();
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (priority: Priority) =>
      api.control.reprioritize({
        requestId: newRequestId(),
        tenant: run.tenant,
        runId: run.runId,
        agentInstance: slot.agent?.instance ?? '',
        priority,
      }),
    onSuccess: async () => {
      notifications.show({ message: 'The priority was changed.' });
      await queries.invalidateQueries({ queryKey: ['run', run.runId] });
    },
  });
  return (
    <>
      <Select
        aria-label={`Priority of ${slot.agent?.instance ?? ''}`}
        size="xs"
        w={120}
        data={PRIORITIES}
        value={String(slot.priority)}
        allowDeselect={false}
        disabled={change.isPending}
        onChange={(value) => value !== null && change.mutate(Number(value) as Priority)}
      />
      {change.error !== null && <ErrorNotice error={change.error} />}
    </>
  );
}
