import { InternalError } from '@writ/kernel';
import type { Role, Route } from '@writ/rpc';
import { AGENT_HOSTS, type ServiceName } from './names.ts';

/**
 * The permitted callers of one RPC. `agentToken`, `slotGrant` and `epoch` apply only to agent hosts, which act on
 * behalf of an agent; other services act in their own name.
 */
export type CallerRow = OpenRow | PeopleRow | ServicesRow;

/** Every caller, without a token. */
export interface OpenRow {
  readonly open: true;
}

/** People with one of these roles, on the public port. */
export interface PeopleRow {
  readonly people: readonly Role[];
  /** Roles whose calls have a request rate of their own (BD-2). Default: none. */
  readonly ownRate?: readonly Role[];
}

/** These services, on an internal port. */
export interface ServicesRow {
  readonly services: readonly ServiceName[];
  /** An agent token with the called service as its audience. */
  readonly agentToken?: 'required';
  /**
   * Whether an agent token is accepted although it has expired, or its `iat` is in the future because the clock of the
   * supervisor was wrong (BD-3).
   */
  readonly agentTokenOfAnyTime?: true;
  /** A current slot grant of the same agent; with `unless_partial` the handler decides (SB-4). */
  readonly slotGrant?: 'required' | 'unless_partial';
  /** The worker's lease epoch of the agent (RT-2). */
  readonly epoch?: 'required';
}

const OPEN: OpenRow = { open: true };
/** Every role but `agent`, which has no permissions on the public port (AP-1). */
const EVERY_PERSON: PeopleRow = {
  people: ['caller', 'approver', 'auditor', 'operator', 'admin'],
};
const CALLERS: PeopleRow = { people: ['caller', 'admin'] };
const RUN_READERS: PeopleRow = { people: ['caller', 'auditor', 'admin'] };
const APPROVERS: PeopleRow = { people: ['approver', 'admin'] };
const APPROVAL_READERS: PeopleRow = { people: ['approver', 'auditor', 'admin'] };
const AUDITORS: PeopleRow = { people: ['auditor', 'admin'] };
/** The handler checks that only an operator reads the usage of another tenant (EM-10). */
const USAGE_READERS: PeopleRow = { people: ['caller', 'auditor', 'operator', 'admin'] };
/** The handler checks whether the person may act in the tenant and on the scope (SV-9). */
const OPERATORS: PeopleRow = { people: ['admin', 'operator'] };
/** With a rate of their own, because a key that floods its tenant must not block the halt that stops it (BD-2). */
const HALT_OPERATORS: PeopleRow = { ...OPERATORS, ownRate: OPERATORS.people };
/** Calls of auditors count separately, so that an auditor's key cannot block a halt of its tenant. */
const HALT_READERS: PeopleRow = {
  people: ['auditor', ...OPERATORS.people],
  ownRate: OPERATORS.people,
};

const SUPERVISOR: ServicesRow = { services: ['supervisor'] };
const GATEWAY: ServicesRow = { services: ['tool-gateway'] };
/**
 * These callers send no agent token in the metadata: the request of Renew contains the agent tokens, and WatchPauses
 * needs none.
 */
const SUPERVISOR_AND_AGENT_HOSTS: ServicesRow = { services: ['supervisor', ...AGENT_HOSTS] };
const SUPERVISOR_AND_AGENT: ServicesRow = { ...SUPERVISOR_AND_AGENT_HOSTS, agentToken: 'required' };
const AGENT: ServicesRow = {
  services: AGENT_HOSTS,
  agentToken: 'required',
  epoch: 'required',
};
const AGENT_WITH_SLOT: ServicesRow = { ...AGENT, slotGrant: 'required' };

const rows: Readonly<Record<string, Readonly<Record<string, CallerRow>>>> = {
  'writ.run.v1.RunService': {
    StartRun: CALLERS,
    RunAgent: CALLERS,
    GetRun: RUN_READERS,
    ListRuns: RUN_READERS,
    WatchRun: RUN_READERS,
    WatchRuns: RUN_READERS,
    CancelRun: CALLERS,
    IssueRunToken: CALLERS,
    CloseRun: CALLERS,
    SignalRun: CALLERS,
    ListLogEntries: RUN_READERS,
    ListAgents: RUN_READERS,
    ListRunAgents: RUN_READERS,
    ListTools: RUN_READERS,
  },
  'writ.approval.v1.ApprovalService': {
    ListApprovals: APPROVAL_READERS,
    GetApproval: APPROVAL_READERS,
    DecideApproval: APPROVERS,
    WatchApprovals: APPROVAL_READERS,
  },
  'writ.audit.v1.AuditService': {
    ListAuditRecords: AUDITORS,
    ExportAudit: AUDITORS,
  },
  'writ.control.v1.ControlService': {
    Halt: HALT_OPERATORS,
    Resume: HALT_OPERATORS,
    ListHalts: HALT_READERS,
    Reprioritize: OPERATORS,
    TestNotifications: OPERATORS,
  },
  'writ.usage.v1.UsageService': {
    GetRunUsage: USAGE_READERS,
    GetBalances: USAGE_READERS,
    QueryUsage: USAGE_READERS,
    GetPool: USAGE_READERS,
    ListModels: USAGE_READERS,
    SetCaps: OPERATORS,
  },
  'writ.supervision.v1.SupervisionService': {
    GetManifest: AGENT,
    SpawnChild: AGENT_WITH_SLOT,
    EndChild: AGENT,
    RefreshTokens: { ...AGENT, agentTokenOfAnyTime: true },
    ReportOutcome: AGENT,
    // The request itself contains the key of the agent.
    OpenExternalRun: { services: ['agent-proxy'] },
    ReportReceipts: GATEWAY,
  },
  'writ.review.v1.ReviewService': {
    ReviewAction: { ...AGENT, slotGrant: 'unless_partial' },
    GetDecision: AGENT_WITH_SLOT,
    // Withdrawing permits no action, so it needs no slot.
    WithdrawAction: AGENT,
  },
  'writ.spawn.v1.SpawnBudgetService': {
    OpenPool: SUPERVISOR,
    Acquire: SUPERVISOR,
    Release: SUPERVISOR,
    Renew: SUPERVISOR_AND_AGENT_HOSTS,
    Reprioritize: SUPERVISOR,
    GetPool: SUPERVISOR,
    ListOpenPools: SUPERVISOR,
    WatchPauses: SUPERVISOR_AND_AGENT_HOSTS,
    ClosePool: SUPERVISOR,
  },
  'writ.meter.v1.ExecutionMeterService': {
    OpenTab: SUPERVISOR,
    Consume: SUPERVISOR,
    Reserve: SUPERVISOR,
    Settle: SUPERVISOR,
    ReleaseReservation: SUPERVISOR,
    GetTab: SUPERVISOR_AND_AGENT,
    GetBalances: SUPERVISOR,
    SetCaps: SUPERVISOR,
    QueryUsage: SUPERVISOR,
    ListOpenTabs: SUPERVISOR,
    CloseTab: SUPERVISOR,
    Freeze: SUPERVISOR,
    Unfreeze: SUPERVISOR,
  },
  'writ.model.v1.ModelService': {
    Generate: AGENT_WITH_SLOT,
    CountTokens: AGENT_WITH_SLOT,
    AccessResponse: AGENT_WITH_SLOT,
    ListModels: SUPERVISOR_AND_AGENT,
  },
  'writ.tool.v1.ToolGatewayService': {
    ListTools: SUPERVISOR_AND_AGENT,
    // The writ is the credential: it names tenant, run and agent.
    CallTool: { services: AGENT_HOSTS, epoch: 'required' },
    GetReceipt: SUPERVISOR_AND_AGENT,
    VoidWrit: SUPERVISOR,
    ResolveOutcome: SUPERVISOR,
    Freeze: SUPERVISOR,
    Unfreeze: SUPERVISOR,
  },
  'writ.tool.v1.ToolProviderService': {
    DescribeTools: GATEWAY,
    Invoke: GATEWAY,
  },
  'writ.worker.v1.AgentWorkerService': {
    Deliver: SUPERVISOR,
    Signal: SUPERVISOR,
    Cancel: SUPERVISOR,
    DescribeRun: SUPERVISOR,
    FindAgents: SUPERVISOR,
    ListLogEntries: SUPERVISOR,
  },
  'writ.identity.v1.KeyService': {
    GetKeys: OPEN,
  },
  'writ.identity.v1.CallerService': {
    GetCaller: EVERY_PERSON,
  },
};

/**
 * The permitted callers of every RPC, by `package.Service/Method`. The gates enforce the table (SYS-6) and deny an RPC
 * without a row. A server with an RPC that has no row does not start.
 */
export const callerTable: ReadonlyMap<string, CallerRow> = new Map(
  Object.entries(rows).flatMap(([service, methods]) =>
    Object.entries(methods).map(([method, row]) => [`${service}/${method}`, row] as const),
  ),
);

const SYSTEM_SERVICES = [
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
];

/** The parts of a method descriptor that name an RPC. */
export interface RpcName {
  readonly name: string;
  readonly parent: { readonly typeName: string };
}

/** Returns the table key of an RPC, such as `writ.run.v1.RunService/StartRun`. */
export function rpcKey(method: RpcName): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** Returns the row of an RPC; undefined when no caller is permitted. Health and reflection are open to every caller. */
export function callerRow(method: RpcName): CallerRow | undefined {
  if (SYSTEM_SERVICES.includes(method.parent.typeName)) return OPEN;
  return callerTable.get(rpcKey(method));
}

/**
 * Whether people with these roles may call an RPC of the public port. `rpc` is its key, such as
 * `writ.run.v1.RunService/StartRun`.
 */
export function permitsRoles(rpc: string, roles: readonly Role[]): boolean {
  const row = callerTable.get(rpc);
  return row !== undefined && 'people' in row && row.people.some((role) => roles.includes(role));
}

/** Returns the keys of the RPCs of the public port that people with these roles may call, sorted. */
export function permittedRpcs(roles: readonly Role[]): string[] {
  return [...callerTable.keys()].filter((rpc) => permitsRoles(rpc, roles)).sort();
}

/**
 * Checks at startup that every RPC of `routes` has a row (SYS-4).
 * @throws InternalError CALLER_RULE_MISSING naming the first RPC without a row
 */
export function assertRows(routes: Iterable<Pick<Route, 'service'>>): void {
  for (const { service } of routes) {
    for (const method of service.methods) {
      if (callerRow(method) !== undefined) continue;
      const rpc = rpcKey(method);
      throw new InternalError(
        'CALLER_RULE_MISSING',
        `${rpc} has no row in the caller table; add one in libs/identity.`,
        { rpc },
      );
    }
  }
}
