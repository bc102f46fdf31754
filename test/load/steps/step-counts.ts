import { StepsStage } from './steps-stage.ts';

const STEP_RPCS = {
  Generate: 'writ.model.v1.ModelService/Generate',
  ReviewAction: 'writ.review.v1.ReviewService/ReviewAction',
  CallTool: 'writ.tool.v1.ToolGatewayService/CallTool',
} as const;

const BESIDE = [
  'writ.spawn.v1.SpawnBudgetService/Renew',
  'writ.supervision.v1.SupervisionService/ReportReceipts',
];

/** What one governed step takes. */
export interface StepCounts {
  /** Durable commits of all services that a request waits for. */
  readonly commits: number;
  /** Calls in the background, by time and not by step: each may have taken one of the commits. */
  readonly beside: number;
  /** Calls between services. */
  readonly hops: Readonly<Record<keyof typeof STEP_RPCS, number>>;
  /** Requests to the model's provider over HTTP, as the provider counts them. */
  readonly questions: number;
}

/** Counts hops and commits of a step: what a longer run has more of than a short one (RT-1). */
export async function stepCounts(short: number, long: number): Promise<StepCounts> {
  const stage = await StepsStage.start({ counts: [short, long], countHops: true });
  let asked = 0;
  stage.model.asked = () => {
    asked += 1;
  };
  try {
    const taken = async (count: number) => {
      const before = await stage.figures();
      const askedBefore = asked;
      await stage.count(count, 'count');
      const after = await stage.figures();
      const hops = (rpc: string) => (after.hops[rpc] ?? 0) - (before.hops[rpc] ?? 0);
      return { commits: after.commits - before.commits, hops, questions: asked - askedBefore };
    };
    // The first run also fetches keys and lists tools.
    await taken(short);
    const [few, many] = [await taken(short), await taken(long)];
    const perStep = (rpc: string) => (many.hops(rpc) - few.hops(rpc)) / (long - short);
    return {
      commits: (many.commits - few.commits) / (long - short),
      beside: BESIDE.reduce((sum, rpc) => sum + Math.max(0, perStep(rpc)), 0),
      hops: {
        Generate: perStep(STEP_RPCS.Generate),
        ReviewAction: perStep(STEP_RPCS.ReviewAction),
        CallTool: perStep(STEP_RPCS.CallTool),
      },
      questions: (many.questions - few.questions) / (long - short),
    };
  } finally {
    await stage.close();
  }
}
