import { Supervision, type SupervisionFields } from '@writ/kernel';

/** An agent's place in the tree as text that can be kept; money is decimal digits, since JSON has no bigint. */
export function supervisionText(supervision: SupervisionFields): string {
  return JSON.stringify(supervision, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
}

/** The place in the tree that {@link supervisionText} kept. */
export function restoreSupervision(text: string): Supervision {
  const fields = JSON.parse(text) as SupervisionFields;
  const { maxCostNanoUsd, ...budget } = fields.executionBudget;
  return Supervision.restore({
    ...fields,
    executionBudget: {
      ...budget,
      ...(maxCostNanoUsd !== undefined && { maxCostNanoUsd: BigInt(maxCostNanoUsd) }),
    },
  });
}
