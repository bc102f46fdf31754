import { ToolFailure, type Tools } from '@writ/kernel';

/** Tools for the review of agent settings: one with personal data, and one that fails first. */
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
