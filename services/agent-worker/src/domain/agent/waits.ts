import { isHumanReply, isReply } from './message.ts';

/** The signals that an agent waits for, with the times at which it began to (AG-7). */
export type Waits = ReadonlyMap<string, Date>;

/** What ends a wait: the answer of a person, another signal, or a timer. */
export type WaitKind = 'input' | 'signal' | 'timer';

/** Prefix of the signals of timers. */
export const TIMER = 'timer:';
const APPROVAL = 'approval:';

/** Parses the stored waits of an agent. */
export function readWaits(text: string | null): Waits {
  const stored = JSON.parse(text ?? '{}') as Readonly<Record<string, string>>;
  return new Map(Object.entries(stored).map(([name, since]) => [name, new Date(since)]));
}

/** Returns the stored form of waits. */
export function waitsText(waits: Waits): string {
  return JSON.stringify(Object.fromEntries(waits));
}

/** Returns the waits of an agent that is suspended: a wait that a replay continues keeps its beginning. */
export function continueWaits(before: Waits, names: readonly string[], at: Date): Waits {
  return new Map(names.map((name) => [name, before.get(name) ?? at]));
}

/**
 * Returns the kind of a wait for a signal; undefined for waits that have other spans: the supervisor records a wait for
 * an approval, and the child runs during a wait for its reply.
 */
export function waitKindOf(name: string): WaitKind | undefined {
  if (name.startsWith(APPROVAL) || isReply(name)) return undefined;
  if (isHumanReply(name)) return 'input';
  return name.startsWith(TIMER) ? 'timer' : 'signal';
}
