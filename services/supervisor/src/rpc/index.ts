import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { CallerService } from '@writ/contracts/writ/identity/v1/caller_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';
import { keyRoute } from '@writ/identity';
import { endless, type Route, reserved, route } from '@writ/rpc';
import type { SupervisorContext } from '../context.ts';
import { decideApproval } from './approval/decide-approval.ts';
import { getApproval } from './approval/get-approval.ts';
import { listApprovals } from './approval/list-approvals.ts';
import { watchApprovals } from './approval/watch-approvals.ts';
import { exportAudit } from './audit/export-audit.ts';
import { listAuditRecords } from './audit/list-audit-records.ts';
import { halt } from './control/halt.ts';
import { listHalts } from './control/list-halts.ts';
import { reprioritize } from './control/reprioritize.ts';
import { resume } from './control/resume.ts';
import { testNotifications } from './control/test-notifications.ts';
import { getCaller } from './identity/get-caller.ts';
import { getDecision } from './review/get-decision.ts';
import { reviewAction } from './review/review-action.ts';
import { withdrawAction } from './review/withdraw-action.ts';
import { cancelRun } from './run/cancel-run.ts';
import { closeRun } from './run/close-run.ts';
import { getRun } from './run/get-run.ts';
import { issueRunToken } from './run/issue-run-token.ts';
import { listAgents } from './run/list-agents.ts';
import { listLogEntries } from './run/list-log-entries.ts';
import { listRunAgents } from './run/list-run-agents.ts';
import { listRuns } from './run/list-runs.ts';
import { listTools } from './run/list-tools.ts';
import { runAgent } from './run/run-agent.ts';
import { signalRun } from './run/signal-run.ts';
import { startRun } from './run/start-run.ts';
import { watchRun } from './run/watch-run.ts';
import { watchRuns } from './run/watch-runs.ts';
import { endChild } from './supervision/end-child.ts';
import { getManifest } from './supervision/get-manifest.ts';
import { openExternalRun } from './supervision/open-external-run.ts';
import { refreshTokens } from './supervision/refresh-tokens.ts';
import { reportOutcome } from './supervision/report-outcome.ts';
import { reportReceipts } from './supervision/report-receipts.ts';
import { spawnChild } from './supervision/spawn-child.ts';
import { getBalances } from './usage/get-balances.ts';
import { getPool } from './usage/get-pool.ts';
import { getRunUsage } from './usage/get-run-usage.ts';
import { listModels } from './usage/list-models.ts';
import { queryUsage } from './usage/query-usage.ts';
import { setCaps } from './usage/set-caps.ts';

/** The services of the public listener. */
export function publicRoutes(context: SupervisorContext): Route[] {
  return [
    route(RunService, {
      startRun: startRun(context),
      runAgent: endless(runAgent(context)),
      getRun: getRun(context),
      listRuns: listRuns(context),
      watchRun: endless(watchRun(context)),
      watchRuns: endless(watchRuns(context)),
      cancelRun: cancelRun(context),
      issueRunToken: issueRunToken(context),
      closeRun: closeRun(context),
      signalRun: signalRun(context),
      listLogEntries: listLogEntries(context),
      listAgents: listAgents(context),
      listRunAgents: listRunAgents(context),
      listTools: listTools(context),
    }),
    route(ApprovalService, {
      listApprovals: listApprovals(context),
      getApproval: getApproval(context),
      decideApproval: decideApproval(context),
      watchApprovals: endless(watchApprovals(context)),
    }),
    route(AuditService, {
      listAuditRecords: listAuditRecords(context),
      exportAudit: exportAudit(context),
    }),
    route(ControlService, {
      halt: reserved(halt(context)),
      resume: reserved(resume(context)),
      listHalts: reserved(listHalts(context)),
      reprioritize: reprioritize(context),
      testNotifications: testNotifications(context),
    }),
    route(UsageService, {
      getRunUsage: getRunUsage(context),
      getBalances: getBalances(context),
      queryUsage: queryUsage(context),
      getPool: getPool(context),
      listModels: listModels(context),
      setCaps: setCaps(context),
    }),
    route(CallerService, { getCaller: getCaller() }),
    // Auditors verify exports with these keys, also in the console.
    keyRoute(context.signer),
  ];
}

/** The services of the internal listener. */
export function internalRoutes(context: SupervisorContext): Route[] {
  return [
    route(SupervisionService, {
      getManifest: getManifest(context),
      spawnChild: spawnChild(context),
      endChild: endChild(context),
      refreshTokens: refreshTokens(context),
      reportOutcome: reportOutcome(context),
      openExternalRun: openExternalRun(context),
      reportReceipts: reportReceipts(context),
    }),
    route(ReviewService, {
      reviewAction: reviewAction(context),
      getDecision: getDecision(context),
      withdrawAction: withdrawAction(context),
    }),
    keyRoute(context.signer),
  ];
}
