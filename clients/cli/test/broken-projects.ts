import type { ProjectFolder } from './project-folder.ts';

/** A broken project, and the pattern of the error message that names the cause. */
export interface BrokenProject {
  readonly what: string;
  readonly breaks: (project: ProjectFolder) => void;
  readonly named: RegExp;
}

/** Modifications that each break a new project in one place. */
export const BROKEN_PROJECTS: readonly BrokenProject[] = [
  {
    what: 'a missing file',
    breaks: ({ remove }) => remove('policy.yaml'),
    named: /has no policy\.yaml/,
  },
  {
    what: 'a tab in YAML',
    breaks: ({ change }) => change('agents.yaml', '    kind: react', '\t kind: react'),
    named: /agents\.yaml:5:\d+: .*[Tt]ab/,
  },
  {
    what: 'a misspelled key',
    breaks: ({ change }) => change('agents.yaml', 'instructions:', 'instruction:'),
    named: /agents\.yaml:7:5: .*instruction/,
  },
  {
    what: 'an agent whose tool does not exist',
    breaks: ({ change }) => change('agents.yaml', '[get_order, issue', '[get_ordr, issue'),
    named:
      /agents\.yaml:11:13: tool get_ordr does not exist\. Available tools: get_order, issue_voucher\./,
  },
  {
    what: 'an agent whose model does not exist',
    breaks: ({ change }) => change('agents.yaml', 'model: main', 'model: mian'),
    named: /agents\.yaml:10:\d+: model mian does not exist\. Available models: main\./,
  },
  {
    what: 'a provider key that is not set',
    breaks: ({ change }) =>
      change('models.yaml', 'OPENAI_API_KEY\n    model', 'ACME_KEY\n    model'),
    named: /models\.yaml:5:\d+: model main needs a provider key in ACME_KEY, which is not set\./,
  },
  {
    what: 'a variable that is not set',
    breaks: ({ change }) => change('models.yaml', 'OPENAI_MODEL:-gpt-4.1-mini', 'ACME_MODEL'),
    named: /models\.yaml:5:\d+: model main needs the variable ACME_MODEL, which is not set\./,
  },
  {
    what: 'a model without a price',
    breaks: ({ change }) => change('models.yaml', 'gpt-4.1-mini', 'acme-large'),
    named:
      /models\.yaml:5:\d+: model main has no price, because the price list does not have acme-large/,
  },
  {
    what: 'a sub-agent that does not exist',
    breaks: ({ change }) =>
      change('agents.yaml', '    tools:', '    sub_agents: [{ name: clerk }]\n    tools:'),
    named: /agents\.yaml:11:\d+: agent "clerk" is not defined/,
  },
  {
    what: 'a policy that reads an argument which the tool does not have',
    breaks: ({ change }) =>
      change(
        'policy.yaml',
        'when: cents(args.amount_usd) > limits',
        'when: cents(args.amount) > limits',
      ),
    named: /policy\.yaml:\d+:\d+: .*args\.amount does not exist; available: order or amount_usd/,
  },
  {
    what: 'a rule for a tool that does not exist',
    breaks: ({ change }) => change('policy.yaml', 'tool: get_order }', 'tool: get_orders }'),
    named: /policy\.yaml:\d+:\d+: .*no tool is named get_orders/,
  },
  {
    what: 'a cap of an argument that does not exist',
    breaks: ({ change }) => change('policy.yaml', 'argument: amount_usd', 'argument: amount'),
    named: /policy\.yaml:\d+:\d+: .*amount/,
  },
  {
    what: 'a policy without a rule for answers',
    breaks: ({ change }) =>
      change('policy.yaml', 'match: { kind: final }', 'match: { kind: delegation }'),
    named: /policy\.yaml:\d+:\d+: .*every answer is blocked/,
  },
  {
    what: 'a tool without a function',
    breaks: ({ change }) => change('tools.ts', 'issue_voucher: async', 'send_voucher: async'),
    named: /tools\.yaml:3:\d+: .*tools\.ts of the source shop has no function for issue_voucher/,
  },
  {
    what: 'a module whose package is not installed',
    breaks: ({ change }) => change('tools.ts', "'@writ/sdk'", "'acme-sdk'"),
    named: /imports the package acme-sdk, which is not installed; run npm install acme-sdk in/,
  },
  {
    what: 'a module that is not TypeScript',
    breaks: ({ write }) => write('tools.ts', 'export async function createTools( {'),
    named: /tools\.yaml:3:\d+: .*tools\.ts of the source shop cannot be loaded/,
  },
  {
    what: 'a custom agent without code',
    breaks: ({ change }) => {
      change('agents.yaml', 'kind: react', 'kind: custom');
      change('agents.yaml', '    limits: { max_iterations: 6 }\n', '');
    },
    named: /agents\.yaml:\d+:\d+: .*custom/,
  },
  {
    what: 'a script that is invalid',
    breaks: ({ change }) => change('simulator/default.yaml', 'name: default', 'name: other'),
    named: /simulator\/default\.yaml:\d+:\d+: name must be default/,
  },
];
