/** How long an agent's history and recorded payloads are kept (SUP-4). */
export const HistoryRetention = {
  /**
   * Journal and payloads are deleted after the end of the run, by default half a minute later; the audit log keeps
   * digests. Requests to a model API that can store conversations disable this storage.
   */
  NONE: 'none',
  /** Deleted like NONE, but a model API may store the conversation. */
  RUN: 'run',
  /** Kept; the platform never deletes it. */
  PERMANENT: 'permanent',
} as const;

/** One of the three retentions. */
export type HistoryRetention = (typeof HistoryRetention)[keyof typeof HistoryRetention];

/** Whether `value` is a retention (SUP-4). */
export function isHistoryRetention(value: unknown): value is HistoryRetention {
  return Object.values<unknown>(HistoryRetention).includes(value);
}
