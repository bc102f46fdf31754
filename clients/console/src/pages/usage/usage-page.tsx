import { BarChart } from '@mantine/charts';
import { Alert, Grid, SegmentedControl, SimpleGrid, Table, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { printable, usdText } from '@writ/client/display';
import { useState } from 'react';
import { EmptyNotice, ErrorNotice, Loading } from '../../parts/notices.tsx';
import { Page } from '../../parts/page.tsx';
import { Section } from '../../parts/section.tsx';
import { useSession } from '../../session/session-provider.tsx';
import { BudgetGauges } from '../run/budget-gauges.tsx';
import {
  type Dimension,
  daysBack,
  MAX_ROWS,
  type Sum,
  sumBy,
  totalOf,
  type UsageDay,
  useBalances,
  useUsage,
} from './use-usage.ts';

const RANGES = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
];
const COLORS = [
  'indigo.6',
  'teal.6',
  'orange.6',
  'grape.6',
  'cyan.6',
  'pink.6',
  'lime.7',
  'gray.6',
];
/** Maximum number of series in a chart; the others are summed. */
const MAX_SERIES = COLORS.length - 1;

/** Shows usage by day, agent, model and tenant. */
export function UsagePage() {
  const { caller } = useSession();
  const [days, setDays] = useState('30');
  const [tenant, setTenant] = useState('');
  const [settledTenant] = useDebouncedValue(tenant.trim(), 300);
  const usage = useUsage(Number(days), settledTenant);
  const balances = useBalances(settledTenant);
  const isOperator = caller?.roles.includes('operator') === true;
  const rows = usage.data?.rows ?? [];
  const total = totalOf(rows);
  return (
    <Page
      title="Usage"
      about={`Settled model calls of tenant ${settledTenant || (caller?.tenant ?? '')}, by UTC day`}
      actions={
        <>
          {isOperator && (
            <TextInput
              aria-label="Tenant"
              placeholder={caller?.tenant}
              value={tenant}
              onChange={(event) => setTenant(event.currentTarget.value)}
            />
          )}
          <SegmentedControl aria-label="Days" value={days} onChange={setDays} data={RANGES} />
        </>
      }
    >
      {usage.error !== null && <ErrorNotice error={usage.error} onRetry={usage.refetch} />}
      {usage.isPending && <Loading />}
      {usage.data !== undefined && rows.length === 0 && (
        <EmptyNotice title={`Nothing was spent in ${days} days`}>
          Usage of calls in flight is not included.
        </EmptyNotice>
      )}
      {usage.data?.hasMore === true && (
        <Alert color="yellow" role="note" title="Only part of the usage is included">
          These are the first {MAX_ROWS.toLocaleString()} rows, one for each agent instance, model
          and day. Choose fewer days, or sum on the server with `writ usage`.
        </Alert>
      )}
      {rows.length > 0 && (
        <>
          <SimpleGrid cols={{ base: 2, md: 4 }}>
            <Figure name="Cost" text={usdText(total.costNanoUsd)} />
            <Figure name="Tokens" text={total.tokens.toLocaleString()} />
            <Figure name="Turns" text={total.turns.toLocaleString()} />
            <Figure name="Calls without an answer" text={total.failed.toLocaleString()} />
          </SimpleGrid>
          <Section title="Cost in USD by day and model">
            <DayChart rows={rows} days={Number(days)} />
          </Section>
          <Grid>
            {(['agent', 'model', 'tenant', 'day'] as const).map((dimension) => (
              <Grid.Col key={dimension} span={{ base: 12, lg: 6 }}>
                <Section title={`By ${dimension}`}>
                  <SumTable
                    dimension={dimension}
                    sums={sumBy(rows, dimension)}
                    total={total.costNanoUsd}
                  />
                </Section>
              </Grid.Col>
            ))}
          </Grid>
        </>
      )}
      {balances.data !== undefined && balances.data.length > 0 && (
        <Section title="Budgets of the tenant">
          <SimpleGrid cols={{ base: 1, md: 2 }}>
            {balances.data.map((balance) => (
              <BudgetGauges key={balance.level} balance={balance} />
            ))}
          </SimpleGrid>
        </Section>
      )}
    </Page>
  );
}

function Figure({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <Section title={name}>
      <Text size="lg" fw={600} style={{ overflowWrap: 'anywhere' }}>
        {text}
      </Text>
    </Section>
  );
}

function DayChart({ rows, days }: { readonly rows: readonly UsageDay[]; readonly days: number }) {
  const models = sumBy(rows, 'model').map(({ name }) => name);
  const shown = models.slice(0, MAX_SERIES);
  const hasOthers = models.length > shown.length;
  const nameOf = (model: string): string => (shown.includes(model) ? model : 'other models');
  const byDay = new Map(daysBack(days).map((day) => [day, {} as Record<string, number>]));
  for (const { day, model, costNanoUsd } of rows) {
    const costs = byDay.get(day);
    const name = nameOf(model);
    if (costs !== undefined) costs[name] = (costs[name] ?? 0) + Number(costNanoUsd) / 1e9;
  }
  const series = [...shown, ...(hasOthers ? ['other models'] : [])];
  return (
    <BarChart
      h={260}
      type="stacked"
      data={[...byDay].map(([day, costs]) => ({ day: day.slice(5), ...costs }))}
      dataKey="day"
      series={series.map((name, index) => ({
        name,
        label: printable(name),
        color: COLORS[index] ?? 'gray.6',
      }))}
      withLegend
      valueFormatter={(value) => String(Number(value.toPrecision(3)))}
      yAxisProps={{ width: 72 }}
      barChartProps={{ accessibilityLayer: false }}
    />
  );
}

function SumTable({
  dimension,
  sums,
  total,
}: {
  readonly dimension: Dimension;
  readonly sums: readonly Sum[];
  readonly total: bigint;
}) {
  const shown = sums.slice(0, 12);
  return (
    <>
      <Table.ScrollContainer minWidth={270} type="native">
        <Table verticalSpacing={6}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{dimension}</Table.Th>
              <Table.Th ta="right">tokens</Table.Th>
              <Table.Th ta="right" visibleFrom="sm">
                turns
              </Table.Th>
              <Table.Th ta="right">cost</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.map(({ name, tokens, turns, costNanoUsd }) => (
              <Table.Tr key={name}>
                <Table.Td miw={90} style={{ overflowWrap: 'anywhere' }}>
                  {printable(name)}
                </Table.Td>
                <Table.Td ta="right">{tokens.toLocaleString()}</Table.Td>
                <Table.Td ta="right" visibleFrom="sm">
                  {turns.toLocaleString()}
                </Table.Td>
                <Table.Td ta="right">
                  {usdText(costNanoUsd)}
                  <Text size="xs" className="muted">
                    {total === 0n
                      ? ''
                      : `${((Number(costNanoUsd) / Number(total)) * 100).toFixed(1)} %`}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {sums.length > shown.length && (
        <Text size="xs" className="muted">
          and {sums.length - shown.length} more; `writ usage --by {dimension}` lists all
        </Text>
      )}
    </>
  );
}
