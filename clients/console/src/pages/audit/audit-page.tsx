import { Button, Drawer, Grid, Group, Stack, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useInfiniteQuery } from '@tanstack/react-query';
import { printable, recordFactsText, timeText } from '@writ/client/display';
import type { AuditRecord } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { useCallback, useMemo, useState } from 'react';
import { EmptyNotice, ErrorNotice, Loading } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { ShownJson } from '../../parts/shown-text.tsx';
import { localTime } from '../../parts/times.ts';
import { Cell, VirtualList } from '../../parts/virtual-list.tsx';
import { useApi, useSession } from '../../session/session-provider.tsx';
import classes from './audit-page.module.css';
import { VerifyCard } from './verify-card.tsx';

const PAGE_SIZE = 200;

/** The audit record of the tenant, in the order of the chain. */
export function AuditPage() {
  const { caller, can } = useSession();
  const [filter, setFilter] = useState({ runId: '', agentInstance: '', kind: '' });
  const [settled] = useDebouncedValue(filter, 250);
  const [shown, setShown] = useState<AuditRecord>();
  const records = useRecords(settled);
  const rows = useMemo(
    () => records.data?.pages.flatMap((page) => page.records) ?? [],
    [records.data],
  );
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = records;
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const fields = [
    ['kind', 'Kind', 'such as approval'],
    ['runId', 'Run', 'every run'],
    ['agentInstance', 'Agent instance', 'every agent'],
  ] as const;
  return (
    <Page title="Audit" about={`Records of tenant ${caller?.tenant ?? ''}, oldest first`}>
      <Grid>
        <Grid.Col span={{ base: 12, lg: 8 }}>
          <Stack>
            <Group gap="sm">
              {fields.map(([name, label, placeholder]) => (
                <TextInput
                  key={name}
                  label={label}
                  placeholder={placeholder}
                  value={filter[name]}
                  onChange={(event) =>
                    setFilter({ ...filter, [name]: event.currentTarget.value.trim() })
                  }
                  style={{ flex: '1 1 140px' }}
                />
              ))}
            </Group>
            {records.error !== null && (
              <ErrorNotice error={records.error} onRetry={records.refetch} />
            )}
            {records.isPending && <Loading />}
            {records.isSuccess && rows.length === 0 && <EmptyNotice title="No records" />}
            {rows.length > 0 && (
              <VirtualList
                label="Audit records"
                rows={rows}
                keyOf={(record) => String(record.sequence)}
                rowHeight={46}
                columns={[
                  { name: 'Record' },
                  { name: 'Kind' },
                  { name: 'Facts' },
                  { name: 'Time' },
                ]}
                template="64px 110px minmax(0, 1fr) 196px"
                onEnd={onEnd}
                renderRow={(record) => <RecordRow record={record} onShow={setShown} />}
              />
            )}
          </Stack>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 4 }}>
          {can('writ.audit.v1.AuditService/ExportAudit') && <VerifyCard />}
        </Grid.Col>
      </Grid>
      <Drawer
        opened={shown !== undefined}
        onClose={() => setShown(undefined)}
        position="right"
        size="lg"
        title={`Record ${shown?.sequence ?? ''}`}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {shown !== undefined && (
          <Stack>
            <Text size="sm" className="muted">
              {timeText(shown.recordTime)}
            </Text>
            <ShownJson json={shown.canonicalJson} maxHeight="60dvh" />
            <Text size="xs" className="mono" style={{ overflowWrap: 'anywhere' }}>
              hash {shown.hash}
              <br />
              previous hash {shown.previousHash}
            </Text>
          </Stack>
        )}
      </Drawer>
    </Page>
  );
}

function RecordRow({
  record,
  onShow,
}: {
  readonly record: AuditRecord;
  readonly onShow: (record: AuditRecord) => void;
}) {
  return (
    <>
      <Cell>
        <Button
          variant="subtle"
          size="compact-sm"
          onClick={() => onShow(record)}
          aria-label={`Record ${record.sequence}`}
        >
          {String(record.sequence)}
        </Button>
      </Cell>
      <Cell>{record.kind}</Cell>
      <Cell className={`clip muted ${classes.facts}`}>
        {printable(recordFactsText(record.canonicalJson))}
      </Cell>
      <Cell className={`muted ${classes.time}`}>{localTime(record.recordTime)}</Cell>
    </>
  );
}

interface RecordFilter {
  readonly runId: string;
  readonly agentInstance: string;
  readonly kind: string;
}

function useRecords(filter: RecordFilter) {
  const api = useApi();
  return useInfiniteQuery({
    queryKey: ['audit', filter.runId, filter.agentInstance, filter.kind],
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      api.audit.listAuditRecords(
        { ...filter, pageSize: PAGE_SIZE, pageToken: pageParam },
        { signal },
      ),
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
}
