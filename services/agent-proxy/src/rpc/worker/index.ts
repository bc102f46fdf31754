import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { type Route, route } from '@writ/rpc';
import type { ProxyContext } from '../../context.ts';
import { cancel } from './cancel.ts';
import { deliver } from './deliver.ts';
import { describeRun } from './describe-run.ts';
import { findAgents } from './find-agents.ts';
import { listLogEntries } from './list-log-entries.ts';
import { signal } from './signal.ts';

/** The route of AgentWorkerService for external agents (AP-1). */
export function workerRoute(context: ProxyContext): Route {
  return route(AgentWorkerService, {
    deliver: deliver(context),
    signal: signal(context),
    cancel: cancel(context),
    describeRun: describeRun(context),
    findAgents: findAgents(context),
    listLogEntries: listLogEntries(),
  });
}
