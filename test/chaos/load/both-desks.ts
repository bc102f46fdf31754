import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadYaml } from '@writ/config';
import { type Example, loadExample } from '@writ/platform';

type Data = Record<string, unknown>;

/** The refund desk and the research team in one platform, so that both run under the same faults. */
export function bothDesks(folder: string): Example {
  const desk = loadExample('refund-desk');
  const team = loadExample('research-team');
  mkdirSync(folder, { recursive: true });
  for (const file of ['agents', 'models', 'tools', 'policy'] as const) {
    const merged = MERGE[file](dataOf(desk, file), dataOf(team, file));
    // JSON is YAML, too.
    writeFileSync(join(folder, `${file}.yaml`), JSON.stringify(merged));
  }
  // The team's children take the model that their manifests name, which plays the default script.
  return { ...team, folder, scripts: [...desk.scripts, ...team.scripts] };
}

const MERGE = {
  agents: (desk: Data, team: Data) => lists(desk, team, 'agents'),
  models: (desk: Data, team: Data) => ({
    ...objects(desk, team, 'templates'),
    ...objects(desk, team, 'models'),
  }),
  tools: (desk: Data, team: Data) => ({
    ...lists(desk, team, 'tools'),
    ...objects(desk, team, 'sources'),
  }),
  policy: (desk: Data, team: Data) => ({
    policy: 'both-desks',
    about: 'The rules of the team, each for its agents alone, then those of the refund desk.',
    ...objects(desk, team, 'limits'),
    ...objects(desk, team, 'facts'),
    rules: [...(team.rules as Data[]).map(forTheTeam), ...(desk.rules as Data[])],
  }),
};

const TEAM = ['research-lead', 'historian', 'analyst', 'writer', 'person-at-desk'];

function forTheTeam(rule: Data): Data {
  return { ...rule, match: { agent: TEAM, ...(rule.match as Data) } };
}

function lists(one: Data, other: Data, name: string): Data {
  return { [name]: [...((one[name] as unknown[]) ?? []), ...((other[name] as unknown[]) ?? [])] };
}

function objects(one: Data, other: Data, name: string): Data {
  return { [name]: { ...(one[name] as Data), ...(other[name] as Data) } };
}

/** What a file of an example says, with modules by their whole path. */
function dataOf({ folder }: Example, file: string): Data {
  const { value } = loadYaml<Data>(join(folder, `${file}.yaml`), { type: 'object' });
  if (file !== 'tools') return value;
  const sources = Object.entries(value.sources as Record<string, Data>).map(([name, source]) => [
    name,
    { ...source, module: resolve(folder, String(source.module)) },
  ]);
  return { ...value, sources: Object.fromEntries(sources) };
}
