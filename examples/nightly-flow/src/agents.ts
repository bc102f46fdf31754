import { type AgentDefinition, defineAgent, type JsonValue } from '@writ/kernel';

/** Adds up the figures of the day in its task, without a model. */
const dayCounter: AgentDefinition = defineAgent({
  name: 'day-counter',
  async run(agent, { goal }) {
    const day = dayIn(goal);
    if (day === undefined) return agent.fail('no_day', 'The task names no day.');
    const read = await agent.step(1, () => agent.tool('read_figures', { day }));
    if (!read.ok) return agent.fail('no_figures', read.message);
    const orders = numbersIn(read.result.orders_usd);
    const total = orders.reduce((sum, order) => sum + order, 0);
    return `On ${day} there were ${orders.length} orders of ${total} USD in all; the largest was ${Math.max(0, ...orders)} USD.`;
  },
});

/** The TypeScript agents of the flow. */
export const agents: readonly AgentDefinition[] = [dayCounter];

/** Converts a day such as `20 November 2026` to `2026-11-20`. */
function dayIn(text: string): string | undefined {
  const [, words] = /(\d{1,2} [A-Z][a-z]+ \d{4})/.exec(text) ?? [];
  const time = words === undefined ? Number.NaN : Date.parse(`${words} UTC`);
  return Number.isNaN(time) ? undefined : new Date(time).toISOString().slice(0, 10);
}

function numbersIn(value: JsonValue | undefined): number[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'number') : [];
}
