import assert from 'node:assert/strict';
import { create } from '@bufbuild/protobuf';
import type { WritClient } from '@writ/client';
import { ResolveSchema } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { ResolvedOutcome } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { type Brief, publish, readShelf } from '@writ/example-research-team/shelf';
import { derivedId } from '@writ/kernel';
import { loadExample } from '@writ/platform';
import { createSignalAnswers } from '@writ/platform/terminal';
import { untilAdmitted } from './admitted.ts';

/** Runs to drive to their ends; `ended` collects the completed ones. */
export interface TeamJob {
  readonly name: string;
  readonly runs: number;
  readonly batch: number;
  readonly ended: Map<string, Run>;
}

/** Starts the missing runs, answers questions to humans, and waits until all have ended. */
export async function driveTeams(
  client: WritClient,
  dataDir: string,
  job: TeamJob,
  signal: AbortSignal,
): Promise<void> {
  const { goal, agent, signals } = loadExample('research-team');
  let next = 0;
  const driveNext = async () => {
    while (next < job.runs && !signal.aborted) {
      const number = next;
      next += 1;
      // The request id makes the start idempotent across restarts.
      const requestId = `${job.name}-${number}`;
      const { run } = await untilAdmitted(() => client.runs.startRun({ requestId, agent, goal }));
      const runId = run?.runId ?? '';
      if (job.ended.has(runId)) continue;
      const reply = createSignalAnswers(client, signals);
      for await (const { event } of client.runs.watchRun({ runId }, { signal })) {
        if (event === undefined) continue;
        await reply(runId, event);
        const hook = event.entry.case === 'hook' ? event.entry.value : undefined;
        if (hook?.type === HookEventType.APPROVAL_REQUESTED) {
          await resolveCall(client, dataDir, runId, hook.approvalId);
        }
      }
      const seen = await client.runs.getRun({ runId });
      if (seen.run?.result !== undefined) job.ended.set(runId, seen.run);
    }
  };
  await Promise.all(Array.from({ length: job.batch }, driveNext));
}

/** Resolves a call of unknown outcome as a human does: publishes the brief if it is not on the shelf. */
async function resolveCall(client: WritClient, dataDir: string, runId: string, approvalId: string) {
  const isPublished = readShelf(dataDir).some((one) => one.run_id === runId);
  const { approval } = await client.approvals.getApproval({ approvalId });
  const action = approval?.action?.kind;
  assert.ok(action?.case === 'tool');
  const { title, text } = JSON.parse(action.value.argumentsJson) as Pick<Brief, 'title' | 'text'>;
  const brief = { title, text, run_id: runId, idempotency_key: approvalId };
  if (!isPublished) publish(dataDir, brief);
  const resultJson = JSON.stringify({ status: 'ok', number: 1, title });
  const value = create(ResolveSchema, { outcome: ResolvedOutcome.DONE, resultJson });
  const requestId = derivedId('req', approvalId);
  await client.approvals.decideApproval({
    requestId,
    approvalId,
    answer: { case: 'resolve', value },
  });
}
