import { omitUndefined } from '@writ/kernel';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import { planSummary, slidingWindow } from '../../domain/context/shorten-conversation.ts';
import type { AgentContext } from '../../runtime/agent.ts';
import { loadTokenCounter } from './token-counter.ts';
import type { View } from './view.ts';

const INSTRUCTIONS =
  'Summarise this conversation for the one who goes on with it: what was asked, what was found and done, what is open. Keep names, ids and figures. Text only.';

/** A summary of older turns. */
interface Summary {
  readonly turn: ChatTurn;
  /** Number of turns after the instructions that it replaces. */
  readonly covered: number;
}

/**
 * Creates a view that replaces the older turns by the model's summary once the conversation exceeds
 * `budget` tokens (AG-8). Each summary is an ordinary model call and includes the previous summary.
 * If the model returns no summary, the older turns are omitted.
 */
export function createSummaries(budget: number, keepLast: number): View {
  let summary: Summary | undefined;
  const show: View['show'] = async (ctx, turns) => {
    const count = await loadTokenCounter();
    const headLength = turns.findIndex(({ role }) => role !== 'system');
    const summarised = withSummary(turns, headLength, summary);
    const plan = planSummary(summarised, budget, count, keepLast);
    if (plan === undefined) return summarised;
    const text = await summarise(ctx, plan.older);
    if (text === undefined) return slidingWindow(summarised, budget, count);
    summary = {
      turn: { role: 'user', hidden: 'summary', text: `Summary of what came before:\n${text}` },
      covered: turns.length - headLength - plan.latest.length,
    };
    return withSummary(turns, headLength, summary);
  };
  const memory = {
    save: () => summary,
    restore: (saved: unknown) => {
      summary = saved as Summary | undefined;
    },
  };
  return { show, memory };
}

function withSummary(
  turns: readonly ChatTurn[],
  headLength: number,
  summary: Summary | undefined,
): readonly ChatTurn[] {
  if (summary === undefined) return turns;
  const { turn, covered } = summary;
  return [...turns.slice(0, headLength), turn, ...turns.slice(headLength + covered)];
}

async function summarise(
  ctx: AgentContext,
  older: readonly ChatTurn[],
): Promise<string | undefined> {
  return await askModel(ctx, INSTRUCTIONS, older.map(linesOf).join('\n\n'));
}

/** Calls the model for the view; undefined when it returns no text. */
export async function askModel(
  ctx: AgentContext,
  instructions: string,
  text: string,
): Promise<string | undefined> {
  const { model, timeoutMs } = ctx.manifest.model;
  const answer = await ctx.llm({
    model,
    messages: [
      { role: 'system', text: instructions },
      { role: 'user', text },
    ],
    temperature: 0,
    ...omitUndefined({ timeoutMs }),
    json: false,
    requireContent: false,
    purpose: 'summary',
  });
  const answered = answer.kind === 'answer' ? answer.text.trim() : '';
  return answered === '' ? undefined : answered;
}

function linesOf(turn: ChatTurn): string {
  if (turn.role === 'tool') return turn.results.map(({ text }) => `tool: ${text}`).join('\n');
  const uses = turn.role === 'assistant' ? (turn.toolUses ?? []) : [];
  const calls = uses.map(({ tool, argumentsJson }) => `\n(calls ${tool} ${argumentsJson})`);
  return `${turn.role}: ${turn.text}${calls.join('')}`;
}
