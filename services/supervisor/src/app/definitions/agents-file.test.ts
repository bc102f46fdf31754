import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manifestFromJson, manifestToJson } from '../../domain/manifest/manifest-json.ts';
import { loadAgents } from './agents-file.ts';

const REFUND_DESK = join(import.meta.dirname, '../../../../../examples/refund-desk/agents.yaml');
const load = (text: string) => loadAgents({ text, file: 'agents.yaml' });
const one = (more = '') =>
  `agents:\n  - name: a\n    kind: react\n    model: { model: m }\n${more}`;

describe('agents files', () => {
  it('loads the refund desk with its limits (AG-1)', () => {
    const { agents, warnings } = loadAgents(REFUND_DESK);
    expect(warnings).toEqual([]);
    expect(agents.get('refund-worker')).toMatchObject({
      kind: 'json-action',
      limits: { maxSteps: 8, maxToolCalls: 5 },
      executionBudget: { maxActiveMs: 30_000 },
      model: { temperature: 0, jsonMode: true, timeoutMs: 60_000 },
      tools: ['get_refund_context', 'issue_refund', 'send_refund_email'],
      onRefusal: 'stop',
    });
    const brief = agents.get('refund-worker-brief');
    expect(brief?.limits.maxSteps).toBe(3);
    expect(brief?.instructions).toBe(agents.get('refund-worker')?.instructions);
  });

  it('leaves unlimited fields unset and applies the defaults of the kind (AG-10)', () => {
    const { agents } = load(one());
    expect(agents.get('a')).toMatchObject({
      limits: { maxRefusals: 3, maxRetries: 3 },
      executionBudget: {},
      spawnBudget: { maxAgents: 50, allowPreempt: true },
      priority: 'NORMAL',
      retention: 'permanent',
      onRefusal: 'tell_model',
    });
    expect(agents.get('a')?.limits).not.toHaveProperty('maxSteps');
  });

  it('rejects a model for kinds that call no model, and requires a model for most others (AG-1, AG-4)', () => {
    const agent = (kind: string, model = '') => `agents:\n  - name: a\n    kind: ${kind}\n${model}`;
    const flow = '    sub_agents: [{ name: a }]\n    options: { steps: [a] }\n';
    for (const [kind, more] of [['user-proxy'], ['flow', flow], ['custom']] as const) {
      expect(load(agent(kind, more)).agents.get('a')?.model.model).toBe('');
    }
    for (const kind of ['user-proxy', 'flow']) {
      expect(() => load(agent(kind, '    model: { model: m }\n'))).toThrow(
        `:4:12: model is not applicable to agents of kind ${kind}; it has an effect on `,
      );
    }
    for (const kind of ['react', 'json-action', 'orchestrator', 'information', 'personal-feed']) {
      expect(() => load(agent(kind))).toThrow(
        `:2:5: model is required for agents of kind ${kind}.`,
      );
    }
  });

  it('reports the position of an error and the expected value', () => {
    expect(() => load(one('    priority: urgent\n'))).toThrow(
      'agents.yaml:5:15: agents.0.priority must be one of "background", "low", "normal", "high", "critical", not "urgent".',
    );
    expect(() => load(one('    budget: { max_cost_usd: "1.2.3" }\n'))).toThrow(
      /agents\.yaml:5:\d+: .*max_cost_usd.*decimal USD/s,
    );
    expect(() => load(one('    sub_agents: [{ name: ghost }]\n'))).toThrow(
      'agents.yaml:5:26: agent "ghost" is not defined in this file.',
    );
    expect(() => load(`${one()}${one().replace('agents:\n', '')}`)).toThrow(
      'agent "a" is defined twice; agent names must be unique.',
    );
    expect(() => load(one('    model_timeout: 60\n'))).toThrow('unknown key "model_timeout"');
  });

  it('warns about a zero that may have been meant as unlimited', () => {
    const { warnings, agents } = load(one('    budget: { max_tokens: 0 }\n'));
    expect(warnings).toEqual([
      'agents.yaml:5:27: max_tokens is 0, which means none at all; leave it out for unlimited.',
    ]);
    expect(agents.get('a')?.executionBudget.maxTokens).toBe(0);
  });

  it('rejects unreviewed deltas together with redaction (SUP-1, AG-9)', () => {
    const shown = '    unreviewed_deltas: true\n';
    expect(load(one(shown)).agents.get('a')?.unreviewedDeltas).toBe(true);
    const redacted = `${shown}    middleware: { chat: [{ name: redaction }] }\n`;
    expect(() => load(one(redacted))).toThrow(/unreviewed_deltas must not be true/);
  });

  it('computes a hash that changes with the settings but not with comments or explicit defaults', () => {
    const hash = (text: string) => load(text).agents.get('a')?.definitionHash;
    expect(hash(one())).toMatch(/^[0-9a-f]{64}$/);
    expect(hash(`# A comment.\n${one()}`)).toBe(hash(one()));
    expect(hash(one('    priority: normal\n'))).toBe(hash(one()));
    expect(hash(one('    priority: low\n'))).not.toBe(hash(one()));
    expect(hash(one('    budget: { max_cost_usd: 1 }\n'))).not.toBe(hash(one()));
  });

  it('round-trips a manifest through its column, with exact money (EM-4)', () => {
    const { agents } = load(one('    budget: { max_cost_usd: "0.000000001" }\n'));
    const manifest = agents.get('a');
    expect(manifest?.executionBudget.maxCostNanoUsd).toBe(1n);
    expect(manifest && manifestFromJson(manifestToJson(manifest))).toEqual(manifest);
  });
});
