import {
  InvalidRequestError,
  type JsonObject,
  type OptionsSchema,
  STRATEGY_OPTIONS,
  type StrategyDefinition,
  strategyBeforeSummary,
} from '@writ/kernel';
import type { AgentManifest, StrategySetting } from '../../domain/agent/manifest.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import {
  compact,
  slidingWindow,
  tokensOf,
  truncateToolResults,
} from '../../domain/context/shorten-conversation.ts';
import { optionsReader } from '../options.ts';
import { askModel, createSummaries } from './summary.ts';
import { loadTokenCounter } from './token-counter.ts';
import type { View } from './view.ts';

const readKeepLast = optionsReader<{ keep_last: number }>('context', STRATEGY_OPTIONS.compact);
const readMaxLength = optionsReader<{ max_characters: number }>(
  'context',
  STRATEGY_OPTIONS.truncate,
);
const readNone = optionsReader('context', STRATEGY_OPTIONS.sliding_window);

/** One strategy of a pipeline. */
interface Strategy extends Omit<View, 'spent'> {
  /**
   * Selects the same turns as `show`, but without a context. Set only for strategies that shorten turns or drop the
   * oldest ones and never show a dropped turn again, so that a checkpoint can drop it, too.
   */
  readonly window?: (turns: readonly ChatTurn[]) => Promise<readonly ChatTurn[]>;
}

/** Strategies of the worker's modules, by name. */
export type Strategies = ReadonlyMap<string, StrategyDefinition>;

/**
 * Creates the view of a manifest's context settings: its strategies, one after the other (AG-8).
 * Without `context_window`, the built-in strategies other than `truncate` show every turn.
 * @throws InvalidRequestError INVALID_MIDDLEWARE_OPTIONS or UNKNOWN_STRATEGY naming the option
 */
export function createView(
  { context }: Pick<AgentManifest, 'context'>,
  fromModules: Strategies = new Map(),
): View {
  const { strategy: name, options, contextWindow = 0, strategies = [{ name, options }] } = context;
  assertOrder(strategies.map((setting) => setting.name));
  const pipeline = strategies.map((setting) => createStrategy(setting, contextWindow, fromModules));
  const windows = pipeline.map(({ window }) => window).filter((window) => window !== undefined);
  return {
    async show(ctx, turns) {
      let shown = turns;
      for (const strategy of pipeline) shown = await strategy.show(ctx, shown);
      return shown;
    },
    async spent(turns) {
      if (windows.length < pipeline.length) return 0;
      let shown = turns;
      for (const window of windows) shown = await window(shown);
      return turns.length - shown.length;
    },
    memory: {
      save: () => pipeline.map(({ memory }) => memory?.save() ?? null),
      restore: (saved) => {
        for (const [index, state] of (saved as unknown[]).entries()) {
          if (state !== null) pipeline[index]?.memory?.restore(state);
        }
      },
    },
  };
}

function assertOrder(names: readonly string[]): void {
  const wrong = strategyBeforeSummary(names);
  if (wrong === undefined) return;
  throw new InvalidRequestError(
    'INVALID_MIDDLEWARE_OPTIONS',
    `context.strategies: summary must precede ${wrong}; only truncate may come before it.`,
    { field: 'context.strategies' },
  );
}

function createStrategy(
  { name, options }: StrategySetting,
  budget: number,
  fromModules: Strategies,
): Strategy {
  const definition = fromModules.get(name);
  if (definition !== undefined) return createFromModule(definition, options, budget);
  switch (name) {
    case 'truncate': {
      const { max_characters: maxLength } = readMaxLength(options);
      const window = async (turns: readonly ChatTurn[]) => truncateToolResults(turns, maxLength);
      return { show: (_, turns) => window(turns), window };
    }
    case 'compact': {
      const { keep_last: keepLast } = readKeepLast(options);
      if (budget === 0) return WHOLE;
      return {
        show: async (_, turns) =>
          compact(turns, budget, await loadTokenCounter(), { keepLast, marker }),
      };
    }
    case 'summary': {
      const { keep_last: keepLast } = readKeepLast(options);
      return budget === 0 ? WHOLE : createSummaries(budget, keepLast);
    }
    case '':
    case 'sliding_window': {
      readNone(options);
      if (budget === 0) return WHOLE;
      const window = async (turns: readonly ChatTurn[]) =>
        slidingWindow(turns, budget, await loadTokenCounter());
      return { show: (_, turns) => window(turns), window };
    }
    default:
      throw new InvalidRequestError(
        'UNKNOWN_STRATEGY',
        `context: strategy "${name}" does not exist. Available strategies: ${[...Object.keys(STRATEGY_OPTIONS), ...fromModules.keys()].join(', ')}.`,
        { field: 'context' },
      );
  }
}

const WHOLE: Strategy = { show: async (_, turns) => turns, window: async (turns) => turns };

const NO_OPTIONS: OptionsSchema = { properties: {} };

/** One options reader per definition, because a compiled schema is never released from memory. */
const readers = new WeakMap<StrategyDefinition, (options: JsonObject) => JsonObject>();

function readerOf(definition: StrategyDefinition): (options: JsonObject) => JsonObject {
  const { name, options = NO_OPTIONS } = definition;
  const read = readers.get(definition) ?? optionsReader<JsonObject>(name, options);
  readers.set(definition, read);
  return read;
}

/** Creates a strategy of a module. */
function createFromModule(
  definition: StrategyDefinition,
  options: JsonObject,
  contextWindow: number,
): Strategy {
  const { name } = definition;
  const strategy = definition.create(readerOf(definition)(options));
  return {
    async show(ctx, turns) {
      const count = await loadTokenCounter();
      const shown = await strategy.compact(turns, {
        contextWindow,
        countTokens: (some) => tokensOf(some, count),
        ask: (instructions, text) => askModel(ctx, instructions, text),
      });
      if (isConversation(shown)) return shown;
      return ctx.stop({
        stopReason: 'error:invalid_view',
        phase: 'worker',
        detail: `Strategy "${name}" returned no turns, or tool results without the turn that requested them.`,
      });
    },
  };
}

function isConversation(turns: readonly ChatTurn[]): boolean {
  return (
    turns.length > 0 &&
    turns.every(({ role }, index) => {
      if (role !== 'tool') return true;
      const before = turns[index - 1];
      return before?.role === 'assistant' && before.toolUses !== undefined;
    })
  );
}

function marker(missing: number): ChatTurn {
  return {
    role: 'user',
    hidden: 'compacted',
    text: `[${missing} earlier turns are left out here]`,
  };
}
