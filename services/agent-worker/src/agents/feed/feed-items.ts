import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { AgentContext } from '../../runtime/agent.ts';

/** Calls the model once with the manifest's instructions; a failure stops the agent. */
export async function summarize(ctx: AgentContext, text: string): Promise<string> {
  const { model, instructions } = ctx.manifest;
  const answer = await ctx.llm({
    model: model.model,
    messages: [
      ...(instructions === '' ? [] : [{ role: 'system', text: instructions } as const]),
      { role: 'user', text },
    ],
    temperature: model.temperature ?? 0,
    ...(model.maxOutputTokens !== undefined && { maxOutputTokens: model.maxOutputTokens }),
    ...(model.timeoutMs !== undefined && { timeoutMs: model.timeoutMs }),
    json: model.jsonMode,
    requireContent: true,
  });
  if (answer.kind === 'answer') return answer.text.trim();
  const { stopReason, detail, callId } = answer;
  return ctx.stop({ stopReason, phase: 'worker', callId, detail });
}

/**
 * Returns the maximum number of items that an agent processes before its final answer; default:
 * unlimited.
 */
export function maxItems({ options }: AgentManifest): number {
  const { max_items: most } = options;
  return typeof most === 'number' && Number.isInteger(most) && most >= 0
    ? most
    : Number.POSITIVE_INFINITY;
}
