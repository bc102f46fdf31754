import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createExecutionBudget,
  createSpawnBudget,
  type ExecutionBudget,
  narrowExecutionBudget,
  narrowSpawnBudget,
  type SpawnBudget,
} from './budgets.ts';

const count = fc.option(fc.nat(), { nil: undefined });
const execution: fc.Arbitrary<ExecutionBudget> = fc
  .record({
    maxTokens: count,
    maxCostNanoUsd: fc.option(fc.bigInt({ min: 0n, max: 10n ** 15n }), { nil: undefined }),
    maxTurns: count,
    deadlineMs: count,
    maxActiveMs: count,
  })
  .map((given) => createExecutionBudget(given));
const spawn: fc.Arbitrary<SpawnBudget> = fc
  .record({
    maxAgents: fc.integer({ min: 1, max: 100 }),
    allowPreempt: fc.boolean(),
    maxTotalSpawns: count,
    maxDepth: count,
  })
  .map((given) => createSpawnBudget(given));

const isWithin = (inner: object, outer: object): boolean =>
  Object.entries(outer).every(([dimension, cap]) => {
    const value: unknown = Reflect.get(inner, dimension);
    return value !== undefined && (value as number) <= cap;
  });

describe('budgets', () => {
  it('default to 50 agents with preemption, and to no spending limit (SB-1, EM-1)', () => {
    expect(createSpawnBudget()).toEqual({ maxAgents: 50, allowPreempt: true });
    expect(createExecutionBudget()).toEqual({});
  });

  it('keep zero and omit unset limits (EM-1)', () => {
    const budget = createExecutionBudget({ maxTokens: 0, maxCostNanoUsd: 0n, maxTurns: undefined });
    expect(budget).toStrictEqual({ maxTokens: 0, maxCostNanoUsd: 0n });
    expect(Object.isFrozen(budget)).toBe(true);
    expect(createSpawnBudget({ maxDepth: 0, maxTotalSpawns: 0 })).toMatchObject({
      maxDepth: 0,
      maxTotalSpawns: 0,
    });
  });

  it('reject an invalid count, naming the field (SYS-3)', () => {
    const bad = [
      () => createSpawnBudget({ maxAgents: 0 }),
      () => createSpawnBudget({ maxDepth: -1 }),
      () => createExecutionBudget({ maxTokens: 1.5 }),
      () => createExecutionBudget({ deadlineMs: Number.POSITIVE_INFINITY }),
      () => createExecutionBudget({ maxCostNanoUsd: -1n }),
      () => createExecutionBudget({ maxCostNanoUsd: 2n ** 63n }),
    ];
    const fields = [
      'spawn_budget.max_agents',
      'spawn_budget.max_depth',
      'execution_budget.max_tokens',
      'execution_budget.deadline_ms',
      'execution_budget.max_cost_nano_usd',
      'execution_budget.max_cost_nano_usd',
    ];
    for (const [index, make] of bad.entries()) {
      expect(make).toThrow(
        expect.objectContaining({ reason: 'INVALID_BUDGET', metadata: { field: fields[index] } }),
      );
    }
  });

  it('never grow by narrowing, in any dimension (SUP-9)', () => {
    fc.assert(
      fc.property(execution, execution, (parent, requested) => {
        const narrowed = narrowExecutionBudget(parent, requested);
        expect(isWithin(narrowed, parent)).toBe(true);
        expect(isWithin(narrowed, requested)).toBe(true);
        expect(narrowExecutionBudget(parent, narrowed)).toEqual(narrowed);
        expect(narrowExecutionBudget(parent, {})).toEqual(parent);
      }),
    );
  });

  it('never gain headcount or preemption by narrowing (SUP-9, SB-7)', () => {
    fc.assert(
      fc.property(spawn, spawn, (allowed, requested) => {
        const narrowed = narrowSpawnBudget(allowed, requested);
        const { allowPreempt, ...caps } = allowed;
        expect(isWithin(narrowed, caps)).toBe(true);
        expect(narrowed.allowPreempt && !(allowPreempt && requested.allowPreempt)).toBe(false);
      }),
    );
  });
});
