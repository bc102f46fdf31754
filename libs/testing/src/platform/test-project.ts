import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWritClient, type WritClient } from '@writ/client';
import type { Approval } from '@writ/contracts/writ/approval/v1/approval_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { Action } from '@writ/contracts/writ/review/v1/action_pb';
import type { RunResult } from '@writ/contracts/writ/run/v1/run_pb';
import { newId, omitUndefined } from '@writ/kernel';
import { loadProject, openProject, type Platform } from '@writ/platform';

/** Options of {@link startTestProject}. */
export interface TestProjectOptions {
  /** Script of the simulated model. Default: `default`, or else the first one in simulator/. */
  readonly script?: string;
  /**
   * Settings and keys, as environment variables. The environment of the process and the file .env are not read, so that
   * no test calls a provider.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** Folder for the data of the platform. Default: a temporary one, removed by `close`. */
  readonly dataDir?: string;
}

/** A project that runs with a simulated model, on free ports. */
export interface TestProject {
  readonly platform: Platform;
  /** A client with the development key: caller, approver, admin and operator. */
  readonly client: WritClient;
  /** Folder with the data of the platform; tools write below it. */
  readonly dataDir: string;
  /**
   * Starts a run.
   * @throws WritError when the platform rejects it, such as AGENT_NOT_FOUND
   */
  start(agent: string, goal: string): Promise<TestRun>;
  /** Stops the platform and removes a temporary data folder. */
  close(): Promise<void>;
}

/** A run of a test. */
export interface TestRun {
  readonly runId: string;
  /**
   * Waits for the next approval of the run and returns it.
   * @throws Error when the run ends without another approval; its message has the stop reason
   */
  approval(): Promise<TestApproval>;
  /** Decides an approval with the development key. */
  decide(approval: TestApproval, decision: 'approve' | 'reject', comment?: string): Promise<void>;
  /** Waits until the run has ended and returns its result. */
  result(): Promise<RunResult>;
}

/** An action that waits for a person. */
export interface TestApproval {
  readonly approvalId: string;
  /** The tool of a call, the agent of a handoff, or `final` for an answer. */
  readonly target: string;
  /** Arguments of a tool call as JSON; empty for other actions. */
  readonly argumentsJson: string;
  /** Reason of the rule. */
  readonly reason: string;
}

/**
 * Starts the platform on a project with a simulated model, as `writ dev` does.
 * @param folder the project, see `loadProject` of `writ`
 * @throws WritError or ConfigError, one sentence that names the cause; nothing is left running
 * @example
 * ```ts
 * import { startTestProject } from '@writ/testing/platform';
 *
 * const project = await startTestProject('.');
 * const run = await project.start('voucher-agent', 'Order 7 was late.');
 * await run.decide(await run.approval(), 'approve');
 * console.log((await run.result()).stopReason);
 * await project.close();
 * ```
 */
export async function startTestProject(
  folder: string,
  options: TestProjectOptions = {},
): Promise<TestProject> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'writ-test-'));
  const project = await openProject(
    { ...loadProject(folder), env: {} },
    {
      env: { WRIT_LOG_LEVEL: 'silent', ...options.env },
      dataDir,
      freePorts: true,
      ...omitUndefined({ script: options.script }),
    },
  );
  const { platform } = project;
  const client = createWritClient({ baseUrl: platform.edgeUrl, apiKey: platform.apiKey });
  return {
    platform,
    client,
    dataDir,
    start: async (agent, goal) => {
      const { run } = await client.runs.startRun({ requestId: newId('req'), agent, goal });
      return testRun(client, run?.runId ?? '');
    },
    close: async () => {
      await project.close();
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function testRun(client: WritClient, runId: string): TestRun {
  const seen = new Set<string>();
  return {
    runId,
    approval: async () => {
      for await (const { event } of client.runs.watchRun({ runId })) {
        if (event?.entry.case !== 'hook') continue;
        const { type, approvalId } = event.entry.value;
        if (type !== HookEventType.APPROVAL_REQUESTED || seen.has(approvalId)) continue;
        seen.add(approvalId);
        const { approval } = await client.approvals.getApproval({ approvalId });
        if (approval !== undefined) return shortApproval(approval);
      }
      const { run } = await client.runs.getRun({ runId });
      throw new Error(`The run ended without an approval: ${run?.result?.stopReason ?? ''}.`);
    },
    decide: async ({ approvalId }, decision, comment = '') => {
      const answer =
        decision === 'approve'
          ? ({ case: 'approve', value: {} } as const)
          : ({ case: 'reject', value: {} } as const);
      const requestId = newId('req');
      await client.approvals.decideApproval({ requestId, approvalId, answer, comment });
    },
    result: async () => {
      // WatchRun ends when the run ends.
      for await (const _ of client.runs.watchRun({ runId }));
      const { run } = await client.runs.getRun({ runId });
      if (run?.result === undefined) throw new Error(`Run ${runId} has no result.`);
      return run.result;
    },
  };
}

function targetOf(action: Action | undefined): string {
  const kind = action?.kind;
  switch (kind?.case) {
    case 'tool':
    case 'clientTool':
      return kind.value.tool;
    case 'delegation':
      return kind.value.agent;
    default:
      return kind?.case ?? '';
  }
}

function shortApproval({ approvalId, action, reason }: Approval): TestApproval {
  const kind = action?.kind;
  const isCall = kind?.case === 'tool' || kind?.case === 'clientTool';
  return {
    approvalId,
    target: targetOf(action),
    argumentsJson: isCall ? kind.value.argumentsJson : '',
    reason,
  };
}
