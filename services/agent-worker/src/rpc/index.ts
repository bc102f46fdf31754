import { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { type Route, route } from '@writ/rpc';
import type { Dependencies } from '../app/agents/dependencies.ts';
import { cancel } from './cancel.ts';
import { deliver } from './deliver.ts';
import { describeRun } from './describe-run.ts';
import { findAgents } from './find-agents.ts';
import { listLogEntries } from './list-log-entries.ts';
import { signal } from './signal.ts';

/** Returns the route of AgentWorkerService. */
export function workerRoute(dependencies: Dependencies): Route {
  return route(AgentWorkerService, {
    deliver: deliver(dependencies),
    signal: signal(dependencies),
    cancel: cancel(dependencies),
    describeRun: describeRun(dependencies),
    findAgents: findAgents(dependencies),
    listLogEntries: listLogEntries(dependencies),
  });
}
