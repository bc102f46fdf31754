import {
  AgentPresence,
  AgentState,
  AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import { type Route, route } from '@writ/rpc';
import { cancelAgents } from '../../app/agent/cancel-agents.ts';
import { assertTenantServed, deliverAgent } from '../../app/agent/deliver-agent.ts';
import { describeRun, findAgents, loadAgent, type Presence } from '../../app/agent/read-agents.ts';
import { noteDecision } from '../../app/tools/note-decision.ts';
import type { ProxyContext } from '../../context.ts';
import { deliveryFrom } from '../../wire/delivery.ts';

const PRESENCES: Readonly<Record<Presence, AgentPresence>> = {
  alive: AgentPresence.ALIVE,
  ended: AgentPresence.ENDED,
  unknown: AgentPresence.UNKNOWN,
  not_served: AgentPresence.UNSPECIFIED,
};

/**
 * AgentWorkerService for external agents (AP-1). Of the signals a decided approval matters here (AP-4), and a halt, which
 * ends open requests: meter and gateway enforce it, and an external agent has no journal to wake. It writes no log.
 */
export function workerRoute(context: ProxyContext): Route {
  return route(AgentWorkerService, {
    async deliver(request, { caller }) {
      assertServesTenant(caller, request.tenant);
      assertTenantServed(context, request.tenant);
      return { accepted: await deliverAgent(context, deliveryFrom(request, context.ownTime)) };
    },
    async signal({ tenant, runId, agentInstance: instance, name }, { caller }) {
      assertServesTenant(caller, tenant);
      const { ended_at: endedAt } = await loadAgent(context, { tenant, runId, instance });
      const key = { tenant, runId, instance };
      if (name === 'halted') context.open.halt(key);
      const callId = /^approval:(.+)$/.exec(name)?.[1];
      if (callId === undefined || endedAt !== null) return { accepted: false };
      return { accepted: await noteDecision(context, { ...key, callId }) };
    },
    async cancel(
      { requestId, tenant, runId, agentInstance: instance, stopReason, awaitEnd },
      call,
    ) {
      assertServesTenant(call.caller, tenant);
      if (awaitEnd) {
        const { ended_at: endedAt } = await loadAgent(context, { tenant, runId, instance });
        return { hasEnded: endedAt !== null };
      }
      return {
        ended: await cancelAgents(context, { requestId, tenant, runId, instance, stopReason }),
      };
    },
    async describeRun({ tenant, runId }, { caller }) {
      assertServesTenant(caller, tenant);
      const agents = await describeRun(context, { tenant, runId });
      return {
        agents: agents.map(({ name, instance, ended_at: endedAt, stop_reason: stopReason }) => ({
          agent: { name, instance },
          state: endedAt === null ? AgentState.RUNNING : AgentState.CANCELLED,
          epoch: 1n,
          stopReason: stopReason ?? '',
        })),
      };
    },
    async findAgents({ agents }, { caller }) {
      for (const { tenant } of agents) assertServesTenant(caller, tenant);
      const keys = agents.map(({ agentInstance: instance, ...key }) => ({ ...key, instance }));
      const presences = await findAgents(context, keys);
      return { presences: presences.map((presence) => PRESENCES[presence]) };
    },
    async listLogEntries({ tenant }, { caller }) {
      assertServesTenant(caller, tenant);
      return { entries: [], nextPageToken: '' };
    },
  });
}
