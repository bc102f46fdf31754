import { type ToolContext, ToolFailure, type ToolFunction, type Tools } from '@writ/kernel';

/** Creates tools that return valid and invalid results. */
export async function createTools({ variables }: ToolContext): Promise<Tools> {
  let disposed = false;
  const gives =
    (value: unknown): ToolFunction =>
    async () =>
      value as never;
  const cycle: { self?: object } = {};
  cycle.self = cycle;
  return {
    echo: async (args, { idempotencyKey, runId }) => ({
      args,
      key: idempotencyKey,
      run: runId,
      setting: variables.KEY ?? '',
    }),
    fails: async () => {
      throw new ToolFailure('There is no such payee.');
    },
    throws: async () => {
      throw new Error('postgres://user:secret@host refused');
    },
    throwsAtOnce: () => {
      throw new Error('secret');
    },
    isDisposed: async () => ({ disposed }),
    text: gives('ok'),
    list: gives([]),
    nothing: gives(undefined),
    nil: gives(null),
    bigint: gives({ cents: 1n }),
    cycle: gives(cycle),
    date: gives(new Date()),
    map: gives(new Map()),
    [Symbol.asyncDispose]: async () => {
      disposed = true;
    },
  };
}
