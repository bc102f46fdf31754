import { isHumanReply, isReply } from './message.ts';

/** The signals that an agent waits for, each with the start time of the wait (AG-7). */
export type Waits = ReadonlyMap<string, Date>;

/** The event that ends a wait: the answer of a person, another signal, or a timer. */
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

/**
 * Returns the waits of an agent that is being suspended. A signal that the agent already waited for keeps its start
 * time.
 */
export function continueWaits(before: Waits, names: readonly string[], at: Date): Waits {
  return new Map(names.map((name) => [name, before.get(name) ?? at]));
}

/**
 * Returns the kind of a wait for a signal; undefined when another component already records a span for that time: the
 * supervisor for an approval, and the child agent for its reply.
 */
export function waitKindOf(name: string): WaitKind | undefined {
  if (name.startsWith(APPROVAL) || isReply(name)) return undefined;
  if (isHumanReply(name)) return 'input';
  return name.startsWith(TIMER) ? 'timer' : 'signal';
}
