import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { ChatTurn } from '../../domain/calls/model-call.ts';
import { compact } from '../../domain/context/compact.ts';
import { slidingWindow } from '../../domain/context/sliding-window.ts';
import { truncateToolResults } from '../../domain/context/truncate-tool-results.ts';
import { optionsReader } from '../options.ts';
import { createSummaries } from './summaries.ts';
import { loadTokenCounter } from './token-counter.ts';
import type { View } from './view.ts';

const readKeepLast = optionsReader<{ keep_last: number }>('context', {
  keep_last: { type: 'integer', minimum: 1, maximum: 1_000, default: 6 },
});
const readMaxLength = optionsReader<{ max_characters: number }>('context', {
  max_characters: { type: 'integer', minimum: 1, default: 8_000 },
});

/**
 * The view that a manifest's context settings ask for; without any the model sees everything. Without
 * `context_window` only `truncate` does something, since nothing else has a budget to keep to.
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
        // A window only moves on: what has left it does not come back.
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
