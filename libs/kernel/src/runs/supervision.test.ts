import { describe, expect, it } from 'vitest';
import { createSpawnBudget } from '../budgets/budgets.ts';
import { Priority } from './priority.ts';
import { HistoryRetention, isHistoryRetention } from './retention.ts';
import { Supervision } from './supervision.ts';

const lead = { name: 'lead', instance: 'lead-1' };
const helper = { name: 'helper', instance: 'helper-1' };

describe('Supervision', () => {
  it('creates a root with generated ids, PERMANENT history and NORMAL priority (SUP-1)', () => {
    const root = Supervision.root(lead);
    expect(root).toMatchObject({
      rootId: lead,
      depth: 0,
      isRoot: true,
      retention: HistoryRetention.PERMANENT,
      priority: Priority.NORMAL,
      spawnBudget: { maxAgents: 50, allowPreempt: true },
      executionBudget: {},
      progressTopic: `agent.progress/${root.runId}`,
    });
    expect('parentId' in root).toBe(false);
    expect(Supervision.root(lead).runId).not.toBe(root.runId);
    expect(Supervision.root(lead).sessionId).not.toBe(root.sessionId);
  });

  it('continues a given session (SUP-2)', () => {
    expect(Supervision.root(lead, { sessionId: 'chat-7' }).sessionId).toBe('chat-7');
  });

  it('spawns a child one level deeper in the same run, session and headcount (SUP-1)', () => {
    const root = Supervision.root(lead, {
      spawnBudget: createSpawnBudget({ maxAgents: 3 }),
      executionBudget: { maxTokens: 100 },
      priority: Priority.HIGH,
    });
    const child = root.spawnChild({ parentId: lead });
    expect(child).toMatchObject({
      runId: root.runId,
      sessionId: root.sessionId,
      rootId: lead,
      parentId: lead,
      depth: 1,
      isRoot: false,
      retention: HistoryRetention.RUN,
      priority: Priority.NORMAL,
      executionBudget: { maxTokens: 100 },
    });
    expect(child.spawnBudget).toBe(root.spawnBudget);
    expect(child.spawnChild({ parentId: helper }).depth).toBe(2);
  });

  it('limits the execution budget of a child to the budget of its parent (SUP-9)', () => {
    const root = Supervision.root(lead, { executionBudget: { maxTokens: 100, maxTurns: 5 } });
    const child = root.spawnChild({
      parentId: lead,
      executionBudget: { maxTokens: 500, maxTurns: 2, deadlineMs: 1000 },
      priority: Priority.HIGH,
    });
    expect(child.executionBudget).toEqual({ maxTokens: 100, maxTurns: 2, deadlineMs: 1000 });
    expect(child.priority).toBe(Priority.HIGH);
  });

  it('is deeply frozen (SUP-1)', () => {
    const child = Supervision.root(lead).spawnChild({ parentId: lead });
    for (const part of [child, child.rootId, child.parentId, child.spawnBudget]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  it('round-trips through its fields (SUP-1)', () => {
    const child = Supervision.root(lead).spawnChild({ parentId: lead });
    expect(Supervision.restore({ ...child })).toEqual(child);
    expect(() => Supervision.restore({ ...child, runId: 'Not An Id' })).toThrow(/run_id/);
  });
});

describe('HistoryRetention', () => {
  it('accepts none, run and permanent (SUP-4)', () => {
    expect(['none', 'run', 'permanent'].every(isHistoryRetention)).toBe(true);
    expect(isHistoryRetention('forever')).toBe(false);
  });
});
