/** What a command reads and writes beside its arguments; tests bring their own. */
export interface CliIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes a line for the person or the program that reads the output. */
  readonly print: (line: string) => void;
  /** Writes a line beside the output: what went wrong, and why. */
  readonly warn: (line: string) => void;
}

/** What a command came to. */
export const EXIT = {
  /** What was asked holds. */
  holds: 0,
  /** What was asked does not hold. */
  fails: 1,
  /** It could not be found out: wrong arguments, or nobody answered. */
  unknown: 2,
} as const;
export type Exit = (typeof EXIT)[keyof typeof EXIT];
