/** How long an agent's history and recorded payloads are kept (SUP-4). */
export const HistoryRetention = {
  /** Journal and payloads are deleted when the run ends; the audit log keeps digests. */
  NONE: 'none',
  /** Deleted when the run ends. */
  RUN: 'run',
  /** Kept until deleted explicitly. */
  PERMANENT: 'permanent',
} as const;

/** One of the three retentions. */
export type HistoryRetention = (typeof HistoryRetention)[keyof typeof HistoryRetention];

/** Whether `value` is a retention (SUP-4). */
export function isHistoryRetention(value: unknown): value is HistoryRetention {
  return Object.values<unknown>(HistoryRetention).includes(value);
}
