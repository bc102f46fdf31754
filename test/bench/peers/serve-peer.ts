import { measure, type Operation, type Speed } from '../measure.ts';

/** A request of the parent process to a peer: a measurement, or a number of sequential runs. */
export type PeerRequest =
  | { readonly inFlight: number; readonly forMs: number }
  | { readonly runs: number };

/** The speed of runs. */
export interface PeerSpeed extends Speed {
  /** Processor time of a run in the process that makes it, milliseconds. */
  readonly cpuMs: number;
}

/** The answer that every run must end with. */
export const ANSWER = 'The answer is forty-two.';

/**
 * Serves the requests of the parent process by making runs.
 *
 * @param run makes one run and resolves with its answer
 * @param close releases what the program has started
 * @param processor returns the processor time since the start of the process that makes the runs, milliseconds;
 *   default: this process
 */
export function servePeer(
  run: (n: number) => Promise<unknown>,
  close: () => Promise<unknown> = async () => undefined,
  processor: () => number | Promise<number> = ownProcessorMs,
): void {
  const checked: Operation = async (n) => {
    const answer = await run(n);
    if (answer !== ANSWER) throw new Error(`The run ended with ${JSON.stringify(answer)}.`);
  };
  const answerTo = async (request: PeerRequest): Promise<object> => {
    if ('forMs' in request) {
      const before = await processor();
      const speed = await measure(checked, request.inFlight, request.forMs);
      const cpuMs = ((await processor()) - before) / speed.operations;
      return { ...speed, cpuMs } satisfies PeerSpeed;
    }
    for (let n = 0; n < request.runs; n += 1) await checked(n);
    return {};
  };
  process.on('message', (request: PeerRequest) => {
    void answerTo(request).then(
      (answer) => process.send?.(answer),
      (error: unknown) => process.send?.({ error: String(error) }),
    );
  });
  process.once('disconnect', () => void close().finally(() => process.exit()));
  process.send?.({ ready: true });
}

function ownProcessorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

let toolCalls = 0;

/** The tool of every peer: does nothing, and returns how often it was called. */
export function noOp(): { readonly calls: number } {
  toolCalls += 1;
  return { calls: toolCalls };
}
