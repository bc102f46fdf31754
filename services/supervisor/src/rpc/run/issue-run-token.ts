import { durationMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { type Handler, requirePerson } from '@writ/rpc';
import { issueRunToken as issue } from '../../app/run/issue-run-token.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * IssueRunToken: issues a run token, which a program sends to agent-proxy in place of an API key to act as the external
 * agent of a run (AP-1).
 */
export function issueRunToken(
  context: SupervisorContext,
): Handler<typeof RunService.method.issueRunToken> {
  return async ({ runId, lifetime }, call) => {
    const { tenant } = requirePerson(call);
    const lifetimeMs = lifetime && durationMs(lifetime);
    const { token, expireTime } = await issue(context, { tenant, runId }, lifetimeMs);
    const modelBaseUrl = context.config.agentProxyUrl?.() ?? '';
    const mcpUrl = /\/v1\/?$/.test(modelBaseUrl) ? modelBaseUrl.replace(/v1\/?$/, 'mcp') : '';
    const expiry = timestampFromDate(expireTime);
    return { token: `writ_run_${token}`, expireTime: expiry, modelBaseUrl, mcpUrl };
  };
}
