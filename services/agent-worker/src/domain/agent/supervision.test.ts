import { Priority, Supervision } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { restoreSupervision, supervisionText } from './supervision.ts';

describe('a serialized supervision', () => {
  it('is restored unchanged, including money (SUP-1, EM-4)', () => {
    const root = Supervision.root(
      { name: 'lead', instance: 'lead-1' },
      {
        runId: 'run-1',
        priority: Priority.HIGH,
        executionBudget: { maxTokens: 5, maxCostNanoUsd: 9_007_199_254_740_993n },
      },
    );
    const child = root.spawnChild({ parentId: { name: 'lead', instance: 'lead-1' } });
    for (const supervision of [root, child]) {
      expect(restoreSupervision(supervisionText(supervision))).toEqual(supervision);
    }
  });
});
