import { ToolFailure, type Tools } from '@writ/kernel';

/**
 * Creates tools for the review of agent settings, such as a tool that returns personal data and a tool whose first call
 * fails.
 */
export async function createTools(): Promise<Tools> {
  const failed = new Set<string>();
  return {
    find_owner: async ({ id }) => ({
      id: Number(id),
      owner: 'a@example.org',
      notes: 'x'.repeat(600),
    }),
    unsteady: async (_args, { runId }) => {
      if (failed.has(runId)) return { status: 'ok' };
      failed.add(runId);
      throw new ToolFailure('Ask b@example.org.');
    },
  };
}
