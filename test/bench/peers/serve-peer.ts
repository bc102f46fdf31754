import { measure, type Operation } from '../measure.ts';

/** What the parent process asks of a peer: a measurement, or a number of runs one after another. */
export type PeerRequest =
  | { readonly inFlight: number; readonly forMs: number }
  | { readonly runs: number };

/** The answer that every run must end with. */
export const ANSWER = 'The answer is forty-two.';

/**
 * Answers the requests of the parent process with runs.
 *
 * @param run makes one run and resolves with its answer
 * @param close releases what the program has started
 */
export function servePeer(
  run: (n: number) => Promise<unknown>,
  close: () => Promise<unknown> = async () => undefined,
): void {
  const checked: Operation = async (n) => {
    const answer = await run(n);
    if (answer !== ANSWER) throw new Error(`The run ended with ${JSON.stringify(answer)}.`);
  };
  const answerTo = async (request: PeerRequest): Promise<object> => {
    if ('forMs' in request) return await measure(checked, request.inFlight, request.forMs);
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

let toolCalls = 0;

/** The tool of every peer: does nothing, and returns how often it was called. */
export function noOp(): { readonly calls: number } {
  toolCalls += 1;
  return { calls: toolCalls };
}
