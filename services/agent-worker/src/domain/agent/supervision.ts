import { Supervision, type SupervisionFields } from '@writ/kernel';

/** Serializes an agent's supervision; amounts of money become decimal strings, because JSON has no bigint. */
export function supervisionText(supervision: SupervisionFields): string {
  return JSON.stringify(supervision, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
}

/** Parses the output of {@link supervisionText}. */
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
