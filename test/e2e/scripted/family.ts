import { resolve } from 'node:path';

const AGENTS = `
agents:
  - name: lead
    kind: custom
    model: &model { model: refund-desk, also_allowed: ["sim-*"] }
    tools: [get_refund_context]
    budget: { max_tokens: 100000, max_cost_usd: "1.00", max_turns: 50, deadline: 10m, max_seconds: 600 }
    spawn: { max_agents: 3, max_depth: 2 }
    sub_agents: &family
      - { name: scout }
      - { name: chief }
      - { name: lead }
  - name: scout
    kind: custom
    model: *model
    tools: [get_refund_context]
    budget: { max_turns: 20 }
    priority: low
    sub_agents: [{ name: scout }]
  - name: chief
    kind: custom
    model: *model
    budget: { max_tokens: 90000 }
    priority: high
`;

const POLICY = `
policy: family
rules:
  - id: ask-first
    match: { tool: get_refund_context }
    when: args.user_id == 7.0
    decide: escalate
    reason: ask_first
  - id: rest
    decide: approve
    reason: fine
`;

/**
 * The code of the agents. The real worker cannot act for them: it fails to commit the sleep, because the scripted
 * worker holds their leases under a later epoch.
 */
const MODULE = `
import { defineAgent } from ${JSON.stringify(resolve(import.meta.dirname, '../../../libs/kernel/src/index.ts'))};
export const agents = ['lead', 'scout', 'chief'].map((name) => defineAgent({
  name,
  async run(agent) {
    await agent.sleep(3_600_000);
    return '';
  },
}));
`;

/** Settings files of agents that delegate to each other and a policy that allows it. */
export const FAMILY = {
  WRIT_AGENTS_FILE: AGENTS,
  WRIT_POLICY_FILE: POLICY,
  WRIT_AGENT_MODULES: MODULE,
};
