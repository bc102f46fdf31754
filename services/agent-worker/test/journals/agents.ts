import { type AgentOperations, type ChatTurn, defineAgent } from '@writ/kernel';

/** Agents in TypeScript whose journals are recorded; changing an agent invalidates its recorded journals. */

const LOOK_UP = 'get_refund_context';

export const agents = [
  defineAgent({ name: 'asks', run: (agent, { goal }) => agent.prompt({ text: goal }) }),
  defineAgent({
    name: 'loops',
    async run(agent, { goal }) {
      const earlier = await agent.recall();
      const turns: ChatTurn[] = [...earlier, { role: 'user', text: goal }];
      const tools = await agent.tools();
      for (let step = 1; step <= 3; step += 1) {
        const answer = await agent.step(step, () => agent.llm({ turns, tools }));
        if (!answer.ok) return agent.fail('no_answer', answer.message);
        turns.push(answer.turn);
        if (answer.toolUses.length === 0) {
          agent.remember(turns.slice(earlier.length));
          await agent.reply(answer.text);
          return undefined;
        }
        turns.push(await agent.useTools(answer));
      }
      return agent.fail('too_long', 'There is no answer.');
    },
  }),
  defineAgent({
    name: 'notes',
    async run(agent) {
      agent.log('began', { step: 1 }, { at: agent.now().getTime() });
      agent.log('drew', { number: agent.random() });
      agent.check();
      const found = await agent.tool(LOOK_UP, { user_id: 42 });
      agent.log('looked up', { ok: found.ok });
      return 'Noted.';
    },
  }),
  defineAgent({
    name: 'spawns',
    async run(agent) {
      const first = await agent.spawn('reader', 'Read.', { priority: 'LOW' });
      const second = await agent.spawn('counter', 'Count.');
      const own = await agent.prompt({ text: 'Think.' });
      const replies = [];
      for (const spawned of [first, second]) {
        if (!spawned.ok) return agent.fail('not_spawned', spawned.message);
        const reply = await agent.ask(spawned.child, 60_000);
        replies.push(reply.ok ? reply.text : reply.error);
      }
      return `${own} ${replies.join(', ')}`;
    },
  }),
  defineAgent({
    name: 'branches',
    async run(agent) {
      const work = (name: string) => async (branch: AgentOperations) => {
        const text = await branch.prompt({ text: name });
        const { word = '' } = await branch.sleepUntilSignal(`go_${name}`);
        const inner = await branch.all([(one) => one.prompt({ text: `${name} ${word}` })]);
        return `${text} ${inner.join()}`;
      };
      return (await agent.all([work('left'), work('right')])).join(' and ');
    },
  }),
  defineAgent({
    name: 'sleeps',
    async run(agent) {
      agent.draft('Not awake yet.');
      await agent.sleep(5);
      const { word = 'none' } = await agent.sleepUntilSignal('new_source_item');
      return agent.prompt({ text: `The word is ${word}.` });
    },
  }),
  defineAgent({
    name: 'saves',
    async run(agent) {
      agent.log('begins');
      const restored = await agent.restore();
      const { step: done = 0 } = (restored?.state ?? {}) as { step?: number };
      const notes = (restored?.items ?? []).map(String);
      for (let step = done + 1; step <= 5; step += 1) {
        const note = await agent.step(step, () => agent.prompt({ text: `Step ${step}.` }));
        notes.push(note);
        agent.checkpoint({ state: { step }, added: [note] });
      }
      return notes.join(' ');
    },
  }),
  defineAgent({
    name: 'publishes',
    async run(agent, { goal }) {
      await agent.follow('articles');
      await agent.emit({ text: goal });
      return 'Published.';
    },
  }),
  defineAgent({
    name: 'hands-over',
    async run(agent) {
      const reply = await agent.handOff('reader', 'Read.');
      return reply.ok ? reply.text : agent.fail('no_reply', reply.message);
    },
  }),
  defineAgent({ name: 'fails', run: (agent) => agent.fail('gave_up', 'It gives up.') }),
];
