import type { Tools } from '@writ/kernel';

/** Counts the executions of the tools of these tests, in the process of the platform. */
export const counter = {
  runs: 0,
  /** A call ends only after this promise has settled. */
  gate: Promise.resolve(),
};

/** Creates a tool that counts its executions. */
export async function createTools(): Promise<Tools> {
  return {
    wipe_disk: async () => {
      counter.runs += 1;
      await counter.gate;
      return { wiped: counter.runs };
    },
  };
}
