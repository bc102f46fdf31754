import { printable } from '@writ/client/display';

/** A column of a table: its heading, and the text of a row. */
export interface Column<T> {
  readonly heading: string;
  readonly text: (row: T) => string;
  /** Numbers are aligned to the right. */
  readonly isNumber?: boolean;
  /** Whether long cells are printed in full; intended for the last column. */
  readonly isWhole?: boolean;
}

const GAP = '   ';
/** Maximum length of a cell; a longer text is truncated and ends in an ellipsis. */
const MAX_CELL = 60;

/** Rows as aligned lines below their headings, one line per row; empty without rows. */
export function table<T>(columns: readonly Column<T>[], rows: readonly T[]): string[] {
  if (rows.length === 0) return [];
  const lines = [
    columns.map(({ heading }) => heading),
    ...rows.map((row) => columns.map(({ text, isWhole }) => cell(text(row), isWhole))),
  ];
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => line[at]?.length ?? 0)));
  return lines.map((line) =>
    line
      .map((text, at) => {
        const width = widths[at] ?? 0;
        return columns[at]?.isNumber ? text.padStart(width) : text.padEnd(width);
      })
      .join(GAP)
      .trimEnd(),
  );
}

/** Names and their texts as aligned lines; entries without a text are omitted. */
export function fields(entries: Readonly<Record<string, string>>): string[] {
  const shown = Object.entries(entries).filter(([, text]) => text !== '');
  const width = Math.max(0, ...shown.map(([name]) => name.length)) + 1;
  return shown.map(([name, text]) => {
    const start = `${`${name}:`.padEnd(width)} `;
    return start + printable(text).replaceAll('\n', `\n${' '.repeat(start.length)}`);
  });
}

function cell(text: string, isWhole = false): string {
  const line = printable(text.replaceAll(/\s+/g, ' ').trim());
  return line.length > MAX_CELL && !isWhole ? `${line.slice(0, MAX_CELL - 1)}…` : line;
}
