import {
  type ChatTurn,
  defineAgent,
  defineHistoryProvider,
  defineMiddleware,
  defineStrategy,
  MiddlewareTermination,
} from '@writ/kernel';

/** Extensions of a worker as a user defines them: an agent, middleware, a context strategy and a history provider. */

export const agents = [
  defineAgent({
    name: 'asks-twice',
    async run(agent, { goal }) {
      return `${await agent.prompt({ text: goal })} ${await agent.prompt({ text: goal })}`;
    },
  }),
];

export const middleware = [
  defineMiddleware({
    name: 'office_hours',
    options: { properties: { until: { type: 'integer', minimum: 0, maximum: 24, default: 18 } } },
    chat: ({ until }) => ({
      async process(context, next) {
        const hour = context.operations.now().getUTCHours();
        if (hour < Number(until)) return await next(context);
        throw new MiddlewareTermination('out_of_hours', `Models answer until ${until}:00 UTC.`);
      },
    }),
  }),
];

export const strategies = [
  defineStrategy({
    name: 'without_old_results',
    create: () => ({
      compact: (turns) =>
        turns.map((turn, index) =>
          turn.role !== 'tool' || index > turns.length - 2
            ? turn
            : { ...turn, results: turn.results.map((result) => ({ ...result, text: '(old)' })) },
        ),
    }),
  }),
];

const documents = new Map<string, ChatTurn[]>();

export const historyProviders = [
  defineHistoryProvider({
    name: 'documents',
    create: () => ({
      load: async ({ tenant, sessionId, agent }) =>
        documents.get(`${tenant}/${sessionId}/${agent}`) ?? [],
      async save({ tenant, sessionId, agent }, turns) {
        const marked = turns.map((turn) =>
          turn.role === 'tool' ? turn : { ...turn, text: `(from documents) ${turn.text}` },
        );
        documents.set(`${tenant}/${sessionId}/${agent}`, marked);
      },
    }),
  }),
];
