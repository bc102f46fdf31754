import { describe, expect, it } from 'vitest';
import { ALIAS, CLAUDE, startExternalRun } from '../agent-proxy/external-run.ts';
import { pendingApproval, verifiedAudit } from '../agent-proxy/mcp-run.ts';
import { approveEdited } from '../approve-edited.ts';
import { HAS_CLIENTS, modelEnv, runClient } from './client-programs.ts';
import { historyOf, modelOf, reviewedPlatform, shell } from './reviewed-calls.ts';

/** Each client executes the calls of its model until the model answers with a text. */
const CLIENTS = [
  ['openai of Python, streamed chat completions', 'openai_tools.py', ALIAS],
  ['anthropic of Python, streamed', 'anthropic_tools.py', CLAUDE],
  ['@openai/agents', 'openai-agents-tools.mjs', ALIAS],
  ['openai-agents of Python, streamed', 'openai_agents_tools.py', ALIAS],
  ['ai with @ai-sdk/openai, streamed', 'vercel-ai-tools.mjs', ALIAS],
  ['langgraph with langchain-openai of Python', 'langgraph_tools.py', ALIAS],
] as const;

describe.skipIf(!HAS_CLIENTS)('an unmodified, pinned client whose answers are reviewed', () => {
  it.each(CLIENTS)(
    'executes the call that a person edited, but no withheld call: %s (AP-5, SV-5)',
    async (_, program, alias) => {
      const model = await modelOf(
        { text: 'I wipe it.', calls: [shell('rm -rf /')] },
        { text: 'I remove the build.', calls: [shell('rm -rf build')] },
        { text: 'It is clean.' },
      );
      const test = await reviewedPlatform(model);
      const { runId, baseUrl, token } = await startExternalRun(test);
      const running = runClient(program, modelEnv(new URL(baseUrl).origin, token, alias));
      const { approvalId } = await pendingApproval(test, runId);
      await approveEdited(test, approvalId, { command: 'rm -rf build/tmp' });
      const { code, output } = await running;
      const lines = output.split('\n').filter((line) => /^(EXECUTED|ANSWER) /.test(line));
      expect(lines, output).toEqual(['EXECUTED rm -rf build/tmp', 'ANSWER It is clean.']);
      expect(code).toBe(0);
      // The client reports the call as executed, and never received the withheld call.
      expect(model.requests).toHaveLength(3);
      expect(historyOf(model.requests[2])).toContain('rm -rf build/tmp');
      expect(historyOf(model.requests[2])).not.toContain('rm -rf /"');
      await verifiedAudit(test);
    },
  );
});
