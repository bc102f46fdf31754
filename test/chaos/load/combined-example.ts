import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadYaml } from '@writ/config';
import { type Example, loadExample } from '@writ/platform';
import { hostileSettings } from '../../attacks/hostile-settings.ts';

type Data = Record<string, unknown>;

/** Maximum active time of an agent under faults and attacks, seconds. */
const MAX_SECONDS = 1_200;

/**
 * Merges the refund desk and the research team into one example, so that one platform runs both.
 * @param hostileUrl URL of a hostile server, whose models and tools are added
 */
export function combinedExample(folder: string, hostileUrl?: string): Example {
  const refunds = loadExample('refund-desk');
  const team = loadExample('research-team');
  mkdirSync(folder, { recursive: true });
  for (const file of ['agents', 'models', 'tools', 'policy'] as const) {
    const merged = MERGE[file](dataOf(refunds, file), dataOf(team, file));
    const all = hostileUrl === undefined ? merged : withHostile(file, merged, hostileUrl);
    // JSON is valid YAML.
    writeFileSync(join(folder, `${file}.yaml`), JSON.stringify(all));
  }
  // The children of the research team use the model of their manifests, which answers from the default script.
  return { ...team, folder, scripts: [...refunds.scripts, ...team.scripts] };
}

const MERGE = {
  agents: (refunds: Data, team: Data) => lists(refunds, team, 'agents'),
  models: (refunds: Data, team: Data) => ({
    ...objects(refunds, team, 'templates'),
    ...objects(refunds, team, 'models'),
  }),
  tools: (refunds: Data, team: Data) => ({
    ...lists(refunds, team, 'tools'),
    ...objects(refunds, team, 'sources'),
  }),
  policy: (refunds: Data, team: Data) => ({
    policy: 'combined',
    about:
      'The rules of the research team, each limited to its agents, followed by those of the refund desk.',
    ...objects(refunds, team, 'limits'),
    ...objects(refunds, team, 'facts'),
    human: refunds.human,
    rules: [...(team.rules as Data[]).map(limitToTeam), ...(refunds.rules as Data[])],
  }),
};

function withHostile(file: keyof typeof MERGE, merged: Data, url: string): Data {
  const { agents, models, tools, sources } = hostileSettings(url, 'WRIT_SIMULATOR_KEY');
  const own: Record<keyof typeof MERGE, Data> = {
    agents: { agents },
    models: { models },
    tools: { tools, sources },
    policy: { rules: [{ id: 'mail', match: { tool: 'mail' }, decide: 'approve', reason: 'fine' }] },
  };
  if (file === 'agents') for (const agent of merged.agents as Data[]) relax(agent);
  const added = Object.entries(own[file]).map(([name, values]) => [
    name,
    Array.isArray(values)
      ? lists(merged, own[file], name)[name]
      : objects(merged, own[file], name)[name],
  ]);
  return { ...merged, ...Object.fromEntries(added) };
}

/** Raises the limit on active time, because faults delay agents; only a wrong clock makes an agent exceed it. */
function relax(agent: Data): void {
  if (agent.budget !== undefined) {
    agent.budget = { ...(agent.budget as Data), max_seconds: MAX_SECONDS };
  }
}

const TEAM = ['research-lead', 'historian', 'analyst', 'writer', 'person-at-desk'];

function limitToTeam(rule: Data): Data {
  return { ...rule, match: { agent: TEAM, ...(rule.match as Data) } };
}

function lists(one: Data, other: Data, name: string): Data {
  return { [name]: [...((one[name] as unknown[]) ?? []), ...((other[name] as unknown[]) ?? [])] };
}

function objects(one: Data, other: Data, name: string): Data {
  return { [name]: { ...(one[name] as Data), ...(other[name] as Data) } };
}

/** Reads a YAML file of an example; module paths become absolute. */
function dataOf({ folder }: Example, file: string): Data {
  const { value } = loadYaml<Data>(join(folder, `${file}.yaml`), { type: 'object' });
  if (file !== 'tools') return value;
  const sources = Object.entries(value.sources as Record<string, Data>).map(([name, source]) => [
    name,
    { ...source, module: resolve(folder, String(source.module)) },
  ]);
  return { ...value, sources: Object.fromEntries(sources) };
}
