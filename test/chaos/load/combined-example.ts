import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadYaml } from '@writ/config';
import { type Example, loadExample } from '@writ/platform';

type Data = Record<string, unknown>;

/** Merges the refund desk and the research team into one example, so that one platform runs both. */
export function combinedExample(folder: string): Example {
  const refunds = loadExample('refund-desk');
  const team = loadExample('research-team');
  mkdirSync(folder, { recursive: true });
  for (const file of ['agents', 'models', 'tools', 'policy'] as const) {
    const merged = MERGE[file](dataOf(refunds, file), dataOf(team, file));
    // JSON is valid YAML.
    writeFileSync(join(folder, `${file}.yaml`), JSON.stringify(merged));
  }
  // The children of the research team use the model of their manifests, which plays the default script.
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
