import { Stack, Text } from '@mantine/core';
import { BudgetGauges } from './budget-gauges.tsx';
import { useRunUsage } from './use-run.ts';

/** The balances of a run as gauges: settled, reserved, left. */
export function RunBudgets({ runId }: { readonly runId: string }) {
  const usage = useRunUsage(runId);
  const levels = usage.data?.levels ?? [];
  if (levels.length === 0) {
    return (
      <Text size="sm" className="muted">
        {usage.isPending && usage.fetchStatus === 'idle'
          ? 'Your roles do not permit to read usage.'
          : 'No budget yet: the run has not started.'}
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
