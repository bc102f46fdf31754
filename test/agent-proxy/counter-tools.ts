import type { Tools } from '@writ/kernel';

/** What the tools of these tests did, in the process of the platform. */
export const counter = {
  runs: 0,
  /** Settles when a call may end. */
  gate: Promise.resolve(),
};

/** Tools that count their executions. */
export async function createTools(): Promise<Tools> {
  return {
    wipe_disk: async () => {
      counter.runs += 1;
      await counter.gate;
      return { wiped: counter.runs };
    },
  };
}
