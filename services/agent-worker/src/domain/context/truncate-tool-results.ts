import type { ChatTurn } from '../calls/model-call.ts';

/** The turns with every tool result over `maxLength` characters cut and marked (AG-8). */
export function truncateToolResults(turns: readonly ChatTurn[], maxLength: number): ChatTurn[] {
  return turns.map((turn) => {
    if (turn.role !== 'tool') return turn;
    const results = turn.results.map((result) => ({
      ...result,
      text: cut(result.text, maxLength),
    }));
    return { ...turn, results };
  });
}

function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  // Half of a surrogate pair is no character.
  const kept = text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, '');
  return `${kept}\n[cut: ${text.length} characters in all]`;
}
