import { AreaChart } from '@mantine/charts';
import { Text } from '@mantine/core';
import { usdText } from '@writ/client/display';
import { useMemo } from 'react';
import type { CostPoint, RunModel } from './timeline.ts';

/** Maximum number of points that the chart draws. */
const MAX_POINTS = 160;
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

/** The cost of a run over time. */
export function RunCost({ model }: { readonly model: RunModel }) {
  const data = useMemo(() => thinned(model.costs).map(pointOf), [model.costs]);
  if (data.length < 2) {
    return (
      <Text size="sm" className="muted">
        {usdText(model.costNanoUsd)} so far. The chart begins with the second model call.
      </Text>
    );
  }
  return (
    <figure style={{ margin: 0 }}>
      <AreaChart
        h={150}
        data={data}
        dataKey="time"
        series={[{ name: 'cost', label: 'Cost in USD', color: 'indigo.6' }]}
        curveType="stepAfter"
        withDots={false}
        withYAxis={false}
        tickLine="none"
        valueFormatter={(value) => `${value.toFixed(6)} USD`}
        areaChartProps={{ accessibilityLayer: false }}
      />
      <Text component="figcaption" size="xs" className="muted">
        {usdText(model.costNanoUsd)} after {model.costs.length} model calls
      </Text>
    </figure>
  );
}

function pointOf({ at, costNanoUsd }: CostPoint) {
  return { time: CLOCK.format(at), cost: Number(costNanoUsd) / 1e9 };
}

function thinned(points: readonly CostPoint[]): readonly CostPoint[] {
  if (points.length <= MAX_POINTS) return points;
  const every = Math.ceil(points.length / MAX_POINTS);
  return points.filter((_, index) => index % every === 0 || index === points.length - 1);
}
