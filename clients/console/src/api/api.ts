import { type Client, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { AuditService } from '@writ/contracts/writ/audit/v1/audit_service_pb';
import { ControlService } from '@writ/contracts/writ/control/v1/control_service_pb';
import { CallerService } from '@writ/contracts/writ/identity/v1/caller_service_pb';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import { UsageService } from '@writ/contracts/writ/usage/v1/usage_service_pb';

/** The public services. */
export interface Api {
  readonly runs: Client<typeof RunService>;
  readonly approvals: Client<typeof ApprovalService>;
  readonly audit: Client<typeof AuditService>;
  readonly control: Client<typeof ControlService>;
  readonly usage: Client<typeof UsageService>;
  readonly caller: Client<typeof CallerService>;
  readonly keys: Client<typeof KeyService>;
}

/** Returns the clients of the services at the origin of the page; each call sends the token from `credential`. */
export function createApi(credential: () => Promise<string | undefined>): Api {
  const authorize: Interceptor = (next) => async (request) => {
    const token = await credential();
    if (token !== undefined) request.header.set('authorization', `Bearer ${token}`);
    return await next(request);
  };
  const transport = createConnectTransport({
    baseUrl: location.origin,
    useBinaryFormat: true,
    interceptors: [authorize],
  });
  return {
    runs: createClient(RunService, transport),
    approvals: createClient(ApprovalService, transport),
    audit: createClient(AuditService, transport),
    control: createClient(ControlService, transport),
    usage: createClient(UsageService, transport),
    caller: createClient(CallerService, transport),
    keys: createClient(KeyService, transport),
  };
}
