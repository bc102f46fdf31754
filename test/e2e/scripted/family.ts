const AGENTS = `
agents:
  - name: lead
    kind: orchestrator
    model: &model { model: refund-desk, also_allowed: ["sim-*"] }
    tools: [get_refund_context]
    budget: { max_tokens: 100000, max_cost_usd: "1.00", max_turns: 50, deadline: 10m, max_seconds: 600 }
    spawn: { max_agents: 3, max_depth: 2 }
    sub_agents: &family
      - { name: scout }
      - { name: chief }
      - { name: lead }
  - name: scout
    kind: orchestrator
    model: *model
    tools: [get_refund_context]
    budget: { max_turns: 20 }
    priority: low
    sub_agents: [{ name: scout }]
  - name: chief
    kind: orchestrator
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

/** Settings files of agents that delegate to each other and a policy that allows it. */
export const FAMILY = { WRIT_AGENTS_FILE: AGENTS, WRIT_POLICY_FILE: POLICY };
