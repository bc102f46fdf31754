import type { AgentContext } from '../../runtime/agent.ts';

/** Asks the model once about a text, by the manifest's instructions; a failure stops the agent. */
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
    json: false,
    requireContent: true,
  });
  if (answer.kind === 'answer') return answer.text.trim();
  const { stopReason, detail, callId } = answer;
  return ctx.stop({ stopReason, phase: 'worker', callId, detail });
}
