import { HistoryRetention } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { manifestOf } from '../../app/definitions/manifest-of.ts';
import { childInstanceOf, instanceOf } from '../manifest/narrow.ts';
import { planRun, type RunRequest } from './plan-run.ts';

const NOW = new Date('2026-02-26T10:00:00Z');
const MANIFEST = manifestOf({
  name: 'worker',
  kind: 'json-action',
  model: { model: 'small', also_allowed: ['sim-*', 'a.b*'] },
  budget: { max_seconds: 30, max_tokens: 1000, deadline: '60s' },
  priority: 'high',
  retention: 'run',
});
const REQUEST: RunRequest = {
  goal: 'Do it.',
  dataJson: '',
  runBudget: {},
  sessionBudget: undefined,
  spawnBudget: { maxAgents: 50, allowPreempt: true },
  priority: undefined,
  retention: undefined,
  model: '',
};

const plan = (changes: Partial<RunRequest> = {}) =>
  planRun(MANIFEST, { ...REQUEST, ...changes }, 'run-1', NOW);

describe('planRun', () => {
  it('uses the manifest for an empty request', () => {
    expect(plan()).toMatchObject({
      runBudget: MANIFEST.executionBudget,
      deadlineAt: new Date('2026-02-26T10:01:00Z'),
      manifest: { priority: 'HIGH', retention: 'run', model: { model: 'small', alsoAllowed: [] } },
    });
  });

  it('narrows limits and never widens them (SUP-9)', () => {
    const wide = plan({
      runBudget: { maxTokens: 5000, deadlineMs: 90_000 },
      priority: 'CRITICAL',
      retention: HistoryRetention.PERMANENT,
    });
    expect(wide.runBudget).toEqual(MANIFEST.executionBudget);
    expect(wide.manifest).toMatchObject({ priority: 'HIGH', retention: 'run' });
    const narrow = plan({
      runBudget: { maxTokens: 10, maxTurns: 1 },
      priority: 'LOW',
      retention: HistoryRetention.NONE,
    });
    expect(narrow.runBudget).toMatchObject({ maxTokens: 10, maxTurns: 1, maxActiveMs: 30_000 });
    // The root has the same caps as its run.
    expect(narrow.manifest.executionBudget).toEqual(narrow.runBudget);
    expect(narrow.manifest).toMatchObject({ priority: 'LOW', retention: 'none' });
  });

  it('narrows the caps of the session to those of the manifest (EM-3, SUP-9)', () => {
    const capped = manifestOf({
      name: 'worker',
      kind: 'json-action',
      model: { model: 'small' },
      session_budget: { max_tokens: 500, max_cost_usd: '0.25' },
    });
    const of = (sessionBudget?: RunRequest['sessionBudget'], manifest = capped) =>
      planRun(manifest, { ...REQUEST, sessionBudget }, 'run-1', NOW).sessionBudget;
    expect(of()).toEqual({ maxTokens: 500, maxCostNanoUsd: 250_000_000n });
    expect(of({ maxTokens: 900, maxTurns: 3 })).toEqual({
      maxTokens: 500,
      maxCostNanoUsd: 250_000_000n,
      maxTurns: 3,
    });
    expect(of({ maxTurns: 3 }, MANIFEST)).toEqual({ maxTurns: 3 });
    expect(of(undefined, MANIFEST)).toBeUndefined();
  });

  it('matches model patterns with * as the only wildcard', () => {
    expect(plan({ model: 'sim-x' }).manifest.model.model).toBe('sim-x');
    expect(plan({ model: 'a.b' }).manifest.model.model).toBe('a.b');
    expect(() => plan({ model: 'axb' })).toThrow('Model axb is not allowed for worker.');
    expect(() => plan({ model: 'my-sim-x' })).toThrow('Allowed models: small, sim-*, a.b*');
  });

  it('keeps the definition hash of the manifest', () => {
    expect(plan({ model: 'sim-x' }).manifest.definitionHash).toBe(MANIFEST.definitionHash);
  });
});

describe('instanceOf', () => {
  it('derives the instance from the manifest and the run, and limits it to 64 characters (SUP-9)', () => {
    expect(instanceOf('worker', 'run-1')).toMatch(/^worker-[0-9a-z]{6}$/);
    expect(instanceOf('worker', 'run-1')).toBe(instanceOf('worker', 'run-1'));
    expect(instanceOf('worker', 'run-1')).not.toBe(instanceOf('worker', 'run-2'));
    expect(instanceOf('w'.repeat(64), 'run-1')).toHaveLength(64);
    expect(childInstanceOf('worker', 'run-1', 'lead-1', 'op-1')).toMatch(/^worker-[0-9a-z]{12}$/);
  });
});
