import { STRATEGY_OPTIONS } from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import {
  compact,
  planSummary,
  slidingWindow,
  truncateToolResults,
} from '../../domain/context/views.ts';
import type { AgentContext } from '../../runtime/agent.ts';
import { optionsReader } from '../options.ts';
import { loadTokenCounter } from './token-counter.ts';

/** Selects the turns that the model sees; does not change the conversation (AG-2, AG-8). */
export interface View {
  show(ctx: AgentContext, turns: readonly ChatTurn[]): Promise<readonly ChatTurn[]>;
  /**
   * Returns the number of turns after the instructions that no later view includes; default: none.
   */
  spent?(turns: readonly ChatTurn[]): Promise<number>;
  /** State between turns; default: none. */
  readonly memory?: Memory;
}

/** State between turns, which a checkpoint includes. */
export interface Memory {
  /** Returns plain JSON, or undefined for no state. */
  save(): unknown;
  restore(saved: unknown): void;
}

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
 * If the model returns none, the older turns are omitted.
 */
function createSummaries(budget: number, keepLast: number): View {
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
  const { model } = ctx.manifest;
  const answer = await ctx.llm({
    model: model.model,
    messages: [
      { role: 'system', text: INSTRUCTIONS },
      { role: 'user', text: older.map(linesOf).join('\n\n') },
    ],
    temperature: 0,
    json: false,
    requireContent: false,
    purpose: 'summary',
  });
  const text = answer.kind === 'answer' ? answer.text.trim() : '';
  return text === '' ? undefined : text;
}

function linesOf(turn: ChatTurn): string {
  if (turn.role === 'tool') return turn.results.map(({ text }) => `tool: ${text}`).join('\n');
  const uses = turn.role === 'assistant' ? (turn.toolUses ?? []) : [];
  const calls = uses.map(({ tool, argumentsJson }) => `\n(calls ${tool} ${argumentsJson})`);
  return `${turn.role}: ${turn.text}${calls.join('')}`;
}

const readKeepLast = optionsReader<{ keep_last: number }>('context', STRATEGY_OPTIONS.compact);
const readMaxLength = optionsReader<{ max_characters: number }>(
  'context',
  STRATEGY_OPTIONS.truncate,
);

/**
 * Creates the view of a manifest's context settings; by default the model sees every turn. Without
 * `context_window` only `truncate` has an effect, because the other strategies need a budget.
 * @throws InvalidRequestError INVALID_MIDDLEWARE_OPTIONS naming the option
 */
export function createView({ context }: Pick<AgentManifest, 'context'>): View {
  const { strategy, options, contextWindow = 0 } = context;
  if (strategy === 'truncate') {
    const { max_characters: most } = readMaxLength(options);
    return { show: async (_, turns) => truncateToolResults(turns, most) };
  }
  if (contextWindow === 0) return { show: async (_, turns) => turns };
  const budget = contextWindow;
  switch (strategy) {
    case 'compact': {
      const { keep_last: keepLast } = readKeepLast(options);
      return {
        show: async (_, turns) =>
          compact(turns, budget, await loadTokenCounter(), { keepLast, marker }),
      };
    }
    case 'summary':
      return createSummaries(budget, readKeepLast(options).keep_last);
    default: {
      const window = async (turns: readonly ChatTurn[]) =>
        slidingWindow(turns, budget, await loadTokenCounter());
      return {
        show: (_, turns) => window(turns),
        // A window only moves forward.
        spent: async (turns) => turns.length - (await window(turns)).length,
      };
    }
  }
}

function marker(missing: number): ChatTurn {
  return {
    role: 'user',
    hidden: 'compacted',
    text: `[${missing} earlier turns are left out here]`,
  };
}
