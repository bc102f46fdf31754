import type { Turn } from './exchanges.ts';

/** The turns with every tool result over `maxLength` characters cut and marked (AG-8). */
export function truncateToolResults<T extends Turn>(
  turns: readonly T[],
  maxLength: number,
): readonly T[] {
  return turns.map((turn) => {
    if (turn.role !== 'tool' || turn.text.length <= maxLength) return turn;
    const kept = turn.text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, '');
    return { ...turn, text: `${kept}\n[cut: ${turn.text.length} characters in all]` };
  });
}
