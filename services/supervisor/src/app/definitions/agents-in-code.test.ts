import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTelemetry } from '@writ/telemetry';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AgentSettings } from '../../domain/manifest/agent-definition.ts';
import { AgentsFile, loadAgents } from './agents-file.ts';
import { createAgent, functionsOf } from './agents-in-code.ts';

const MODEL = { model: 'm', timeout: '1m30s' };
const CHILDREN = [{ name: 'a', ask_timeout: '5m' }];

/** An agent of each kind. */
const SETTINGS: readonly AgentSettings[] = [
  { name: 'a', kind: 'react', model: MODEL, tools: ['look'], initial_tool_choice: 'look' },
  { name: 'a', kind: 'json-action', model: MODEL, final_instructions: 'Answer.' },
  { name: 'a', kind: 'orchestrator', model: MODEL, sub_agents: CHILDREN, priority: 'high' },
  { name: 'a', kind: 'user-proxy', budget: { deadline: '2d' } },
  { name: 'a', kind: 'information', model: MODEL, output_topic: 'articles' },
  { name: 'a', kind: 'personal-feed', model: MODEL, follow_topics: ['articles'] },
  { name: 'a', kind: 'flow', sub_agents: CHILDREN, options: { steps: ['a'] } },
  { name: 'a', kind: 'custom', budget: { max_cost_usd: '0.000000001', max_seconds: 1.5 } },
];

/** Passes settings that the compiler rejects. */
const create = (settings: object) => createAgent(settings as AgentSettings);
const REACT = { name: 'a', kind: 'react', model: MODEL } as const;

describe('createAgent', () => {
  it.each(SETTINGS)('returns the same $kind agent as agents.yaml (AG-1)', (settings) => {
    // JSON is valid YAML.
    const text = JSON.stringify({ agents: [settings] });
    const { agents } = loadAgents({ text, file: 'agents.yaml' });
    expect(createAgent(settings)).toEqual(agents.get('a'));
  });

  it('names the agent and the setting that is invalid (AG-1)', () => {
    expect(() => create({ ...REACT, priority: 'urgent' })).toThrow(
      'Agent "a": priority must be one of "background", "low", "normal", "high", "critical", not "urgent".',
    );
    expect(() => create({ ...REACT, model: { ...MODEL, timeout: 60 } })).toThrow(
      'Agent "a": model.timeout must be a duration with a unit, such as 30s or 1m30s, not 60.',
    );
    expect(() => create({ ...REACT, temperature: 1 })).toThrow(
      'Agent "a": unknown key "temperature"; known keys: name, kind,',
    );
    expect(() => create({ name: 'a', kind: 'react' })).toThrow(
      'Agent "a": model is required for agents of kind react.',
    );
    expect(() => create({ ...REACT, follow_topics: ['articles'] })).toThrow(
      'Agent "a": follow_topics is not applicable to agents of kind react; it has an effect on personal-feed, custom only.',
    );
    expect(() => create({ kind: 'custom' })).toThrow(
      'Agent without a name: the agent needs "name".',
    );
    expect(() => create({ ...REACT, priority: 1, tools: 'look' })).toThrow(
      /^Agent "a" has 2 problems:\n- Agent "a": tools .*\n- Agent "a": priority /,
    );
  });

  it('accepts names that modules add, but only if they are passed as extensions (AG-8, AG-9)', () => {
    const settings: AgentSettings = { ...REACT, middleware: { chat: [{ name: 'tone' }] } };
    expect(() => createAgent(settings)).toThrow(
      /Agent "a": middleware\.chat\.0\.name: middleware "tone" does not exist/,
    );
    const { chatMiddleware } = createAgent(settings, { middleware: ['tone'] });
    expect(chatMiddleware).toEqual([{ name: 'tone' }]);
  });

  it('accepts a function for a custom agent, and rejects it for other kinds (AG-1, RT-1)', () => {
    const run = async () => 'Done.';
    const clerk = createAgent({ name: 'clerk', kind: 'custom', run, version: '2' });
    const other = createAgent({ name: 'other', kind: 'custom', run });
    expect(functionsOf([clerk, other, createAgent(REACT)])).toEqual([
      { name: 'clerk', run, version: '2' },
      { name: 'other', run },
    ]);
    expect(clerk).toEqual(createAgent({ name: 'clerk', kind: 'custom' }));
    expect(() => createAgent({ ...REACT, run })).toThrow(
      'Agent "a": run is not applicable to agents of kind react; it has an effect on custom only.',
    );
    expect(() => create({ name: 'a', kind: 'custom', run: 'later' })).toThrow(
      'Agent "a": run must be a function, not string.',
    );
    expect(() => createAgent({ name: 'a', kind: 'custom', run, version: 'v 2' })).toThrow(
      'Agent "a": version must be 1 to 64 of a-z, 0-9, _ and -, not "v 2".',
    );
    expect(() => createAgent({ name: 'a', kind: 'custom', version: '2' })).toThrow(
      'Agent "a": version has an effect only together with run.',
    );
  });

  it('returns a read-only definition that later changes of the settings do not affect (AG-1)', () => {
    const tools = ['look'];
    const agent = createAgent({ ...REACT, tools });
    tools.push('pay');
    expect(agent.tools).toEqual(['look']);
    expect(() => (agent.tools as string[]).push('pay')).toThrow(TypeError);
  });
});

describe('agents in code', () => {
  const { log } = createTelemetry({ service: 'test', logLevel: 'silent' });
  const lead = createAgent({
    name: 'lead',
    kind: 'orchestrator',
    model: MODEL,
    sub_agents: [{ name: 'clerk' }],
  });
  const clerk = createAgent({ ...REACT, name: 'clerk' });

  it('are available without a file (AG-1)', async () => {
    const { current } = await AgentsFile.open(undefined, [lead, clerk], log);
    expect([...current.keys()]).toEqual(['lead', 'clerk']);
    await expect(AgentsFile.open(undefined, [lead], log)).rejects.toThrow(
      'Agent "lead": sub_agents.0.name: agent "clerk" is not defined.',
    );
    await expect(AgentsFile.open(undefined, [clerk, clerk], log)).rejects.toThrow(
      'Agent "clerk" is defined twice; agent names must be unique.',
    );
  });

  it('can delegate to agents of a file and vice versa; a change that breaks this is rejected (AG-1)', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'writ-agents-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, 'agents.yaml');
    const write = (...agents: object[]) => writeFileSync(path, JSON.stringify({ agents }));
    const asks = { ...REACT, name: 'asks', sub_agents: [{ name: 'lead' }] };
    write({ ...REACT, name: 'clerk' }, asks);
    const agents = await AgentsFile.open(path, [lead], log);
    expect([...agents.current.keys()]).toEqual(['lead', 'clerk', 'asks']);
    const twice = async () => {
      // A change is applied only when two consecutive polls read the same content.
      await agents.look();
      await agents.look();
      return [...agents.current.keys()];
    };
    write({ ...REACT, name: 'other' });
    expect(await twice()).toEqual(['lead', 'clerk', 'asks']);
    write({ ...REACT, name: 'clerk' });
    expect(await twice()).toEqual(['lead', 'clerk']);
    await expect(AgentsFile.open(path, [lead, clerk], log)).rejects.toThrow(
      /agents\.yaml:1:\d+: agent "clerk" is defined in code, too; agent names must be unique\./,
    );
  });

  it('use the description of the agent for a sub-agent entry without a description (AG-1, AG-3)', async () => {
    const helper = createAgent({ ...REACT, name: 'clerk', description: 'Finds orders.' });
    const other = createAgent({
      ...REACT,
      name: 'other',
      sub_agents: [{ name: 'clerk', description: 'Finds parcels.' }],
    });
    const { current } = await AgentsFile.open(undefined, [lead, other, helper], log);
    const described = (name: string) => current.get(name)?.subAgents[0]?.description;
    expect(described('lead')).toBe('Finds orders.');
    expect(described('other')).toBe('Finds parcels.');
    expect(current.get('lead')?.definitionHash).not.toBe(lead.definitionHash);
    expect(current.get('other')).toEqual(other);
  });

  it('must be created by createAgent; a changed copy is rejected (AG-1)', async () => {
    const changed = { ...clerk, tools: ['pay'] };
    await expect(AgentsFile.open(undefined, [changed], log)).rejects.toThrow(
      'Agent "clerk" was not created by createAgent.',
    );
  });
});
