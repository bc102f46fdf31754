// biome-ignore-all lint/a11y/useSemanticElements: rows are positioned one by one, which table elements do not allow.
// biome-ignore-all lint/a11y/useFocusableInteractive: rows and headings of a table are not interactive.
// biome-ignore-all lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useEffect, useRef } from 'react';
import classes from './virtual-list.module.css';

interface Props<T> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Estimated height of a row, px. */
  readonly rowHeight: number;
  readonly columns: readonly { readonly name: string; readonly className?: string }[];
  /** `grid-template-columns` of header and rows on a wide screen. */
  readonly template: string;
  readonly renderRow: (row: T, index: number) => ReactNode;
  /** Height of the list; default: the remaining height of the window. */
  readonly height?: string;
  /** Whether the list stays at its end while rows are added. */
  readonly followEnd?: boolean;
  /** Called when the end is near. */
  readonly onEnd?: () => void;
  /** Number of all rows when it is known, for screen readers. */
  readonly total?: number;
}

/** Number of rows before the end at which the next page is loaded. */
const NEAR_END = 60;

/** A list that renders only its visible rows. Cells are grid items with the role cell. */
export function VirtualList<T>({
  label,
  rows,
  keyOf,
  rowHeight,
  columns,
  template,
  renderRow,
  height = 'calc(100dvh - 260px)',
  followEnd = false,
  onEnd,
  total = -1,
}: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : keyOf(row);
    },
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - NEAR_END) onEnd?.();
  }, [last, rows.length, onEnd]);
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (followEnd && isAtEnd.current && rows.length > 0) {
      virtual.scrollToIndex(rows.length - 1, { align: 'end' });
    }
  }, [followEnd, rows.length, virtual]);
  const onScroll = (): void => {
    const element = scroller.current;
    if (element === null) return;
    isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 80;
  };
  return (
    <div role="table" aria-label={label} aria-rowcount={total} className={classes.table}>
      <div role="rowgroup" className={classes.head}>
        <div role="row" className={classes.row} style={{ gridTemplateColumns: template }}>
          {columns.map(({ name, className }) => (
            <div key={name} role="columnheader" className={className}>
              {name}
            </div>
          ))}
        </div>
      </div>
      <div
        ref={scroller}
        role="rowgroup"
        tabIndex={0}
        aria-label={`Rows of ${label}`}
        onScroll={onScroll}
        className={classes.body}
        style={{ maxHeight: height }}
      >
        <div role="presentation" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {items.map((item) => {
            const row = rows[item.index];
            if (row === undefined) return null;
            return (
              <div
                key={item.key}
                ref={virtual.measureElement}
                data-index={item.index}
                role="row"
                aria-rowindex={item.index + 2}
                className={classes.row}
                style={{
                  gridTemplateColumns: template,
                  position: 'absolute',
                  insetInline: 0,
                  transform: `translateY(${item.start}px)`,
                }}
              >
                {renderRow(row, item.index)}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** A cell of a row. */
export function Cell({
  children,
  className,
}: {
  readonly children?: ReactNode;
  readonly className?: string;
}) {
  return (
    <div role="cell" className={className} style={{ minWidth: 0 }}>
      {children}
    </div>
  );
}
