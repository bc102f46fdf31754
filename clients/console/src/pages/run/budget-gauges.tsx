import { Group, Progress, Stack, Text } from '@mantine/core';
import { usdText, wordsOf } from '@writ/client/display';
import { BudgetLevel, type LevelBalance } from '@writ/contracts/writ/meter/v1/tab_pb';
import { WordBadge } from '../../parts/state-badge.tsx';

/** The gauges of one level. */
export function BudgetGauges({ balance }: { readonly balance: LevelBalance }) {
  const { limit } = balance;
  const name = wordsOf(BudgetLevel, balance.level);
  return (
    <div>
      <Group justify="space-between" mb={4}>
        <Text size="sm" fw={600}>
          {name}
        </Text>
        {balance.nearBudget && <WordBadge word="near its budget" color="orange" />}
      </Group>
      <Stack gap={6}>
        <Gauge
          name={`${name}: cost`}
          used={balance.usedCostNanoUsd}
          reserved={balance.reservedCostNanoUsd}
          limit={limit?.maxCostNanoUsd}
          left={balance.remainingCostNanoUsd}
          text={usdText}
        />
        <Gauge
          name={`${name}: tokens`}
          used={balance.usedTokens}
          reserved={balance.reservedTokens}
          limit={limit?.maxTokens}
          left={balance.remainingTokens}
          text={(count) => `${count.toLocaleString()} tokens`}
        />
        <Gauge
          name={`${name}: turns`}
          used={balance.usedTurns}
          reserved={balance.reservedTurns}
          limit={limit?.maxTurns}
          left={balance.remainingTurns}
          text={(count) => `${count.toLocaleString()} turns`}
        />
      </Stack>
    </div>
  );
}

interface GaugeProps {
  readonly name: string;
  readonly used: bigint;
  readonly reserved: bigint;
  readonly limit: bigint | undefined;
  readonly left: bigint | undefined;
  readonly text: (amount: bigint) => string;
}

function Gauge({ name, used, reserved, limit, left, text }: GaugeProps) {
  const settled = `${text(used)} settled`;
  const held = reserved > 0n ? `, ${text(reserved)} reserved` : '';
  if (limit === undefined) {
    return (
      <Text size="xs" className="muted">
        {settled}
        {held}, unlimited
      </Text>
    );
  }
  const share = (amount: bigint): number =>
    limit === 0n ? 100 : (Number(amount) / Number(limit)) * 100;
  const label = `${settled}${held}, ${text(left ?? 0n)} left of ${text(limit)}`;
  return (
    <div>
      <Progress.Root size="sm" aria-label={name}>
        <Progress.Section
          value={Math.min(100, share(used))}
          color={share(used + reserved) > 90 ? 'red' : 'indigo'}
          aria-label={`${name}, settled`}
          aria-valuetext={label}
        />
        <Progress.Section
          value={Math.min(100, share(reserved))}
          color="yellow"
          striped
          aria-label={`${name}, reserved`}
          aria-valuetext={text(reserved)}
        />
      </Progress.Root>
      <Text size="xs" className="muted" mt={2}>
        {label}
      </Text>
    </div>
  );
}
