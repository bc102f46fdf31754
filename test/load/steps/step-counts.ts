import { StepsHarness } from './steps-harness.ts';

const STEP_RPCS = {
  Generate: 'writ.model.v1.ModelService/Generate',
  ReviewAction: 'writ.review.v1.ReviewService/ReviewAction',
  CallTool: 'writ.tool.v1.ToolGatewayService/CallTool',
} as const;

/** The operations of a step that commit: its RPCs, and the worker's own work. */
const STEP_OPERATIONS = { ...STEP_RPCS, worker: 'invoke_agent' } as const;

/** The cost of one governed step. */
export interface StepCounts {
  /** Durable commits that each operation waits for. */
  readonly commits: Readonly<Record<keyof typeof STEP_OPERATIONS, number>>;
  /** RPCs between services. */
  readonly hops: Readonly<Record<keyof typeof STEP_RPCS, number>>;
  /** HTTP requests to the model provider. */
  readonly modelRequests: number;
}

/**
 * Counts the RPCs and commits of a step: the difference between a long and a short run (RT-1). Only the
 * step's own operations count, so that work in the background does not change the result.
 */
export async function stepCounts(short: number, long: number): Promise<StepCounts> {
  const harness = await StepsHarness.start({ counts: [short, long], countHops: true });
  let modelRequests = 0;
  harness.model.onRequest = () => {
    modelRequests += 1;
  };
  try {
    const costOf = async (count: number) => {
      const before = { ...(await harness.counters()), modelRequests };
      await harness.count(count, 'count');
      const after = { ...(await harness.counters()), modelRequests };
      const difference = (counter: 'commits' | 'hops') => (name: string) =>
        (after[counter][name] ?? 0) - (before[counter][name] ?? 0);
      return {
        commits: difference('commits'),
        hops: difference('hops'),
        modelRequests: after.modelRequests - before.modelRequests,
      };
    };
    // The first run also fetches keys and lists tools.
    await costOf(short);
    const [few, many] = [await costOf(short), await costOf(long)];
    const steps = long - short;
    const commits = (operation: keyof typeof STEP_OPERATIONS) => {
      const name = STEP_OPERATIONS[operation];
      return (many.commits(name) - few.commits(name)) / steps;
    };
    const hops = (rpc: keyof typeof STEP_RPCS) =>
      (many.hops(STEP_RPCS[rpc]) - few.hops(STEP_RPCS[rpc])) / steps;
    return {
      commits: {
        Generate: commits('Generate'),
        ReviewAction: commits('ReviewAction'),
        CallTool: commits('CallTool'),
        worker: commits('worker'),
      },
      hops: {
        Generate: hops('Generate'),
        ReviewAction: hops('ReviewAction'),
        CallTool: hops('CallTool'),
      },
      modelRequests: (many.modelRequests - few.modelRequests) / steps,
    };
  } finally {
    await harness.close();
  }
}
