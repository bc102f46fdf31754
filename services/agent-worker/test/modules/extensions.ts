import {
  type ChatTurn,
  defineHistoryProvider,
  defineMiddleware,
  defineStrategy,
  MiddlewareTermination,
} from '@writ/kernel';

/** A module as a user writes it, for tests: middleware on every level, two strategies and a history provider. */

/** Turns by session and run. */
export const saved = new Map<string, Map<string, readonly ChatTurn[]>>();
/** Number of calls of `save` that fail before it succeeds. */
export const failing = { saves: 0 };

export const middleware = [
  defineMiddleware({
    name: 'stop_word',
    options: { properties: { word: { type: 'string' } }, required: ['word'] },
    chat: ({ word }) => ({
      async process(context, next) {
        const answer = await next(context);
        if (answer.kind === 'failed' || !answer.text.includes(String(word))) return answer;
        throw new MiddlewareTermination('stop_word', 'The answer contains the stop word.');
      },
    }),
    agent: () => ({
      async process(context, next) {
        context.operations.log('guarded', { agent: context.agent.name });
        await next(context);
      },
    }),
  }),
  defineMiddleware({
    name: 'as_user_7',
    function: () => ({
      async process(context, next) {
        const args = { ...JSON.parse(context.arguments), user_id: 7 };
        const answer = await next({ ...context, arguments: JSON.stringify(args) });
        return answer.ok ? { ok: true, result: { ...answer.result, checked: true } } : answer;
      },
    }),
  }),
  defineMiddleware({
    name: 'offline',
    function: () => ({
      process: async ({ functionName }) => ({ ok: true, result: { offline: functionName } }),
    }),
  }),
];

export const strategies = [
  defineStrategy({
    name: 'shout',
    options: { properties: { suffix: { type: 'string', default: '!' } } },
    create: ({ suffix }) => ({
      compact: (turns) =>
        turns.map((turn) =>
          turn.role === 'user' ? { ...turn, text: `${turn.text}${String(suffix)}` } : turn,
        ),
    }),
  }),
  defineStrategy({ name: 'nothing', create: () => ({ compact: () => [] }) }),
];

export const historyProviders = [
  defineHistoryProvider({
    name: 'documents',
    create: () => ({
      load: async ({ tenant, sessionId, agent }) =>
        [...(saved.get(`${tenant}/${sessionId}/${agent}`)?.values() ?? [])].flat(),
      async save({ tenant, sessionId, agent, runId, instance }, turns) {
        failing.saves -= 1;
        if (failing.saves >= 0) throw new Error('The provider is down.');
        const session = `${tenant}/${sessionId}/${agent}`;
        const runs = saved.get(session) ?? new Map<string, readonly ChatTurn[]>();
        saved.set(session, runs.set(`${runId}/${instance}`, turns));
      },
    }),
  }),
];
