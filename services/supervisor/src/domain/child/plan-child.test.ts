import {
  createExecutionBudget,
  type ExecutionBudget,
  HistoryRetention,
  Priority,
  type PriorityName,
} from '@writ/kernel';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { manifestOf } from '../../app/definitions/manifest-of.ts';
import type { AgentManifest } from '../manifest/agent-manifest.ts';
import { type ChildTerms, type Parent, planChild } from './plan-child.ts';

const NO_TERMS: ChildTerms = {
  executionBudget: {},
  priority: undefined,
  tools: [],
  models: [],
  retention: undefined,
};
const LEAD = manifestOf({
  name: 'lead',
  kind: 'orchestrator',
  model: { model: 'lead' },
  sub_agents: [{ name: 'scout' }],
});
const SCOUT = manifestOf({
  name: 'scout',
  kind: 'react',
  model: { model: 'small', also_allowed: ['large', 'sim-*'] },
  tools: ['look', 'act'],
  priority: 'high',
  initial_tool_choice: 'act',
});
const PARENT: Parent = {
  runId: 'run-1',
  instance: 'lead-1',
  manifest: LEAD,
  executionBudget: {},
  activeMs: 0,
  retention: HistoryRetention.PERMANENT,
};
const plan = (terms: Partial<ChildTerms> = {}, parent: Partial<Parent> = {}) =>
  planChild({ ...PARENT, ...parent }, SCOUT, { ...NO_TERMS, ...terms }, 'op-1');

const amount = fc.option(fc.integer({ min: 0, max: 50 }), { nil: undefined });
const budget: fc.Arbitrary<ExecutionBudget> = fc
  .record({
    maxTokens: amount,
    cost: amount,
    maxTurns: amount,
    deadlineMs: amount,
    maxActiveMs: amount,
  })
  .map(({ cost, ...rest }) =>
    createExecutionBudget({
      ...rest,
      maxCostNanoUsd: cost === undefined ? undefined : BigInt(cost),
    }),
  );
const priority = fc.constantFrom(...(Object.keys(Priority) as PriorityName[]));
const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
const retention = fc.constantFrom(...Object.values(HistoryRetention));
const tools = fc.subarray(['look', 'act', 'dig', 'wipe']);
const models = fc.subarray(['small', 'large', 'sim-1', 'huge']);
const ORDER = [HistoryRetention.NONE, HistoryRetention.RUN, HistoryRetention.PERMANENT];

describe('planChild', () => {
  it('limits a child to what its parent, its manifest and its request allow (SUP-9)', () => {
    const cases = fc.record({
      parentBudget: budget,
      ownBudget: budget,
      asked: budget,
      activeMs: fc.integer({ min: 0, max: 60 }),
      entry: maybe(priority),
      own: priority,
      wanted: maybe(priority),
      ownTools: tools,
      wantedTools: tools,
      wantedModels: models,
      parentRetention: retention,
      ownRetention: retention,
      wantedRetention: maybe(retention),
      parentCalls: amount,
      ownCalls: amount,
    });
    fc.assert(
      fc.property(cases, (given) => {
        const parentManifest: AgentManifest = {
          ...LEAD,
          limits: { ...LEAD.limits, ...calls(given.parentCalls) },
          subAgents: [
            {
              name: 'scout',
              description: '',
              askTimeoutMs: 1,
              ...(given.entry && { priority: given.entry }),
            },
          ],
        };
        const child: AgentManifest = {
          ...SCOUT,
          executionBudget: given.ownBudget,
          priority: given.own,
          tools: given.ownTools,
          retention: given.ownRetention,
          limits: { ...SCOUT.limits, ...calls(given.ownCalls) },
        };
        const parent: Parent = {
          ...PARENT,
          manifest: parentManifest,
          executionBudget: given.parentBudget,
          activeMs: given.activeMs,
          retention: given.parentRetention,
        };
        const terms: ChildTerms = {
          executionBudget: given.asked,
          priority: given.wanted,
          tools: given.wantedTools,
          models: given.wantedModels,
          retention: given.wantedRetention,
        };
        const isAllowed =
          given.wantedTools.every((tool) => given.ownTools.includes(tool)) &&
          !given.wantedModels.includes('huge');
        if (!isWithin(given.asked, given.parentBudget)) {
          expect(() => planChild(parent, child, terms, 'op-1')).toThrow(/the budget of the parent/);
          return;
        }
        if (!isAllowed) {
          expect(() => planChild(parent, child, terms, 'op-1')).toThrow(/tools|models/);
          return;
        }
        const { manifest, models: aliases } = planChild(parent, child, terms, 'op-1');
        for (const limit of [given.parentBudget, given.ownBudget, given.asked]) {
          expectWithin(manifest.executionBudget, limit);
        }
        const left = (given.parentBudget.maxActiveMs ?? Infinity) - given.activeMs;
        expect(manifest.executionBudget.maxActiveMs ?? Infinity).toBeLessThanOrEqual(
          Math.max(0, left),
        );
        for (const cap of [given.entry, given.own, given.wanted]) {
          expect(Priority[manifest.priority]).toBeLessThanOrEqual(Priority[cap ?? 'CRITICAL']);
        }
        for (const cap of [given.parentRetention, given.ownRetention, given.wantedRetention]) {
          const most = cap ?? HistoryRetention.RUN;
          expect(ORDER.indexOf(manifest.retention)).toBeLessThanOrEqual(ORDER.indexOf(most));
        }
        for (const cap of [given.parentCalls, given.ownCalls]) {
          expect(manifest.limits.maxToolCalls ?? Infinity).toBeLessThanOrEqual(cap ?? Infinity);
        }
        const allowed = given.wantedTools.length > 0 ? given.wantedTools : given.ownTools;
        expect(manifest.tools.every((tool) => allowed.includes(tool))).toBe(true);
        if (given.wantedModels.length > 0) expect(aliases).toEqual(given.wantedModels);
        expect([manifest.model.model, ...manifest.model.alsoAllowed]).toEqual(aliases);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['max_tokens', { maxTokens: 1_001 }, { maxTokens: 1_000 }],
    ['max_cost_nano_usd', { maxCostNanoUsd: 2n }, { maxCostNanoUsd: 1n }],
    ['max_turns', { maxTurns: 1 }, { maxTurns: 0 }],
    ['deadline', { deadlineMs: 60_001 }, { deadlineMs: 60_000 }],
    ['max_active', { maxActiveMs: 9 }, { maxActiveMs: 8 }],
  ])(
    'rejects a %s above the parent’s, and names the dimension (SUP-9)',
    (dimension, asked, own) => {
      expect(() => plan({ executionBudget: asked }, { executionBudget: own })).toThrow(
        expect.objectContaining({
          reason: 'BUDGET_ABOVE_PARENT',
          metadata: expect.objectContaining({ dimension }),
        }),
      );
      expect(
        plan({ executionBudget: own }, { executionBudget: own }).manifest.executionBudget,
      ).toMatchObject(own);
    },
  );

  it('uses the manifest for omitted fields (SUP-9)', () => {
    const { manifest, models: aliases } = plan();
    expect(manifest).toMatchObject({
      priority: 'HIGH',
      retention: 'run',
      tools: ['look', 'act'],
      initialToolChoice: 'act',
    });
    expect(aliases).toEqual(['small', 'large']);
    expect(plan({ tools: ['look'] }).manifest.initialToolChoice).toBe('');
  });

  it('keeps a handoff as the initial tool choice if its sub-agent exists (AG-2, SUP-9)', () => {
    const nested = { ...SCOUT, subAgents: LEAD.subAgents, initialToolChoice: 'handoff_scout' };
    const choiceOf = (child: AgentManifest) =>
      planChild(PARENT, child, { ...NO_TERMS, tools: ['look'] }, 'op-1').manifest.initialToolChoice;
    expect(choiceOf(nested)).toBe('handoff_scout');
    expect(choiceOf({ ...nested, subAgents: [] })).toBe('');
  });

  it('derives instances from run, parent and call (SUP-9)', () => {
    const names = [
      plan().instance,
      plan({}, { instance: 'lead-2' }).instance,
      plan({}, { runId: 'run-2' }).instance,
      planChild(PARENT, SCOUT, NO_TERMS, 'op-2').instance,
    ];
    expect(new Set(names).size).toBe(4);
    expect(plan({ priority: 'LOW' }).instance).toBe(names[0]);
  });
});

function calls(maxToolCalls: number | undefined) {
  return maxToolCalls === undefined ? {} : { maxToolCalls };
}

function isWithin(asked: ExecutionBudget, own: ExecutionBudget): boolean {
  return Object.entries(asked).every(([name, value]) => {
    const most = own[name as keyof ExecutionBudget];
    return most === undefined || value <= most;
  });
}

function expectWithin(budgetOf: ExecutionBudget, limit: ExecutionBudget): void {
  for (const [name, most] of Object.entries(limit)) {
    const own = budgetOf[name as keyof ExecutionBudget];
    expect(own !== undefined && own <= most, name).toBe(true);
  }
}
