import {
  ATTR_GEN_AI_OPERATION_NAME,
  ATTR_GEN_AI_PROVIDER_NAME,
  ATTR_GEN_AI_REQUEST_MODEL,
  ATTR_GEN_AI_TOKEN_TYPE,
} from '../genai.ts';

/** Upper bounds of histogram buckets in seconds, from the duration of a local call to that of a slow model call. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const TOKENS = [1, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];
const SIZES = [1, 2, 4, 8, 16, 32, 64];

/**
 * The definition of a metric. Names that start with `writ.` are defined by Writ; other names are from the OpenTelemetry
 * semantic conventions.
 */
export interface MetricRow {
  readonly name: string;
  readonly kind: 'counter' | 'histogram' | 'gauge';
  /** UCUM. */
  readonly unit: string;
  readonly labels: readonly string[];
  /** The service that exports it; `every` for all. */
  readonly from: string;
  readonly about: string;
  /**
   * For a rare counter: the values of its labels, except the tenant label. The series of all combinations start at 0,
   * so that the first event is visible as an increase. Series without a tenant label are created when the service
   * starts, the series of a tenant when a counter of the service first has this tenant as a label.
   */
  readonly zero?: Readonly<Record<string, readonly string[]>>;
  /** Upper bounds of the histogram buckets. */
  readonly buckets?: readonly number[];
}

const RPC_LABELS = ['rpc.service', 'rpc.method', 'rpc.response.status_code', 'error.type'];
const CHAT_LABELS = [
  ATTR_GEN_AI_OPERATION_NAME,
  ATTR_GEN_AI_PROVIDER_NAME,
  ATTR_GEN_AI_REQUEST_MODEL,
];

/** All metrics of Writ; docs/reference/metrics.md and the dashboards are checked against them (SYS-1). */
export const METRICS = {
  rpcServed: {
    name: 'rpc.server.call.duration',
    kind: 'histogram',
    unit: 's',
    labels: RPC_LABELS,
    from: 'every',
    about: 'Duration of handled calls; error.type is the reason code of failed calls',
    buckets: SECONDS,
  },
  rpcCalled: {
    name: 'rpc.client.call.duration',
    kind: 'histogram',
    unit: 's',
    labels: RPC_LABELS,
    from: 'every',
    about: 'Duration of calls to other services, including retries',
    buckets: SECONDS,
  },
  replicaChanges: {
    name: 'writ.rpc.replica.changes',
    kind: 'counter',
    unit: '{change}',
    labels: ['rpc.service', 'writ.replica.state'],
    from: 'every',
    about:
      'Replicas of called services ejected from (not_serving, silent, lost) or readmitted to (serving) load balancing',
  },
  eventLoopDelay: {
    name: 'nodejs.eventloop.delay.p99',
    kind: 'gauge',
    unit: 's',
    labels: [],
    from: 'every',
    about: 'Event loop delay, 99th percentile since the last export',
  },
  eventLoopUse: {
    name: 'nodejs.eventloop.utilization',
    kind: 'gauge',
    unit: '1',
    labels: [],
    from: 'every',
    about: 'Event loop utilization since the last export',
  },
  cacheBytes: {
    name: 'writ.cache.bytes',
    kind: 'gauge',
    unit: 'By',
    labels: ['writ.cache'],
    from: 'every',
    about:
      'Estimated memory of the caches of the process, by name; services in one process report the same value',
  },
  cacheEntries: {
    name: 'writ.cache.entries',
    kind: 'gauge',
    unit: '{entry}',
    labels: ['writ.cache'],
    from: 'every',
    about:
      'Entries in the caches of the process, by name; services in one process report the same value',
  },
  certificateExpiry: {
    name: 'writ.tls.certificate.expiry',
    kind: 'gauge',
    unit: 's',
    labels: ['writ.certificate', 'writ.fingerprint'],
    from: 'every',
    about:
      'Time until a certificate in use (of the service, the edge or, by fingerprint, an authority) expires; negative after expiry',
  },
  clockOffset: {
    name: 'writ.clock.offset',
    kind: 'gauge',
    unit: 's',
    labels: ['writ.peer'],
    from: 'every',
    about:
      'Offset of the clock of a peer from that of this process, positive when the peer is ahead; below 2 s it is 0',
  },
  clockSkewed: {
    name: 'writ.clock.skewed',
    kind: 'gauge',
    unit: '1',
    labels: [],
    from: 'every',
    about:
      '1 while the clock of this process differs too far from the majority of its peers, so that health reports NOT_SERVING',
  },
  commits: {
    name: 'writ.store.commit.size',
    kind: 'histogram',
    unit: '{transaction}',
    labels: [],
    from: 'every',
    about: 'Number of transactions in one commit',
    buckets: SIZES,
  },
  commitSeconds: {
    name: 'writ.store.commit.duration',
    kind: 'histogram',
    unit: 's',
    labels: [],
    from: 'every',
    about: 'Time from the start of a commit, including the wait for its locks, until it is durable',
    buckets: SECONDS,
  },
  outboxBacklog: {
    name: 'writ.outbox.backlog',
    kind: 'gauge',
    unit: '{event}',
    labels: [],
    from: 'every',
    about: 'Events not yet published to the bus; the same on every replica',
  },
  outboxAge: {
    name: 'writ.outbox.age',
    kind: 'gauge',
    unit: 's',
    labels: [],
    from: 'every',
    about: 'Age of the oldest event not yet published to the bus; the same on every replica',
  },
  published: {
    name: 'writ.bus.publishes',
    kind: 'counter',
    unit: '{event}',
    labels: ['writ.event', 'error.type'],
    from: 'every',
    about: 'Events published to the bus; error.type is the reason code of failed attempts',
  },
  delivered: {
    name: 'writ.bus.deliveries',
    kind: 'counter',
    unit: '{event}',
    labels: ['writ.event', 'writ.consumer', 'error.type'],
    from: 'every',
    about: 'Events delivered to a durable consumer, including redeliveries',
  },
  runs: {
    name: 'writ.runs.ended',
    kind: 'counter',
    unit: '{run}',
    labels: ['writ.tenant', 'writ.stop_reason'],
    from: 'supervisor',
    about: 'Runs that reached a terminal state',
  },
  runsStarted: {
    name: 'writ.runs.started',
    kind: 'counter',
    unit: '{run}',
    labels: ['writ.tenant'],
    from: 'supervisor',
    about: 'Runs that were accepted',
  },
  reviews: {
    name: 'writ.reviews',
    kind: 'counter',
    unit: '{action}',
    labels: ['writ.tenant', 'writ.decision', 'writ.rule', 'writ.action_kind'],
    from: 'supervisor',
    about: 'Reviewed actions by decision and rule',
  },
  writs: {
    name: 'writ.writs.minted',
    kind: 'counter',
    unit: '{writ}',
    labels: ['writ.executed_from'],
    from: 'supervisor',
    about: 'Writs signed, including renewals',
  },
  approvalsOpened: {
    name: 'writ.approvals.requested',
    kind: 'counter',
    unit: '{approval}',
    labels: ['writ.tenant'],
    from: 'supervisor',
    about: 'Approvals requested',
    zero: {},
  },
  approvalsDecided: {
    name: 'writ.approvals.decided',
    kind: 'counter',
    unit: '{approval}',
    labels: ['writ.tenant', 'writ.state'],
    from: 'supervisor',
    about: 'Approvals decided, expired, or withdrawn by their agent',
    zero: { 'writ.state': ['approved', 'rejected', 'expired', 'withdrawn'] },
  },
  approvalsOpen: {
    name: 'writ.approvals.open',
    kind: 'gauge',
    unit: '{approval}',
    labels: ['writ.tenant'],
    from: 'supervisor',
    about: 'Open approvals; the same on every replica',
  },
  notifications: {
    name: 'writ.notifications',
    kind: 'counter',
    unit: '{attempt}',
    labels: ['writ.tenant', 'writ.state'],
    from: 'supervisor',
    about:
      'Attempts to send a notification: `delivered`, `retried`, or `failed` after the last attempt',
    zero: { 'writ.state': ['delivered', 'retried', 'failed'] },
  },
  haltsInForce: {
    name: 'writ.halts.in_force',
    kind: 'gauge',
    unit: '{halt}',
    labels: ['writ.scope'],
    from: 'supervisor',
    about:
      'Halts that are not lifted, by scope: `run`, `agent`, `tenant` or `all`; the same on every replica',
  },
  halts: {
    name: 'writ.halts',
    kind: 'counter',
    unit: '{halt}',
    labels: [],
    from: 'supervisor',
    about: 'Halts that took effect, counted once for each affected run',
    zero: {},
  },
  slots: {
    name: 'writ.slots',
    kind: 'gauge',
    unit: '{agent}',
    labels: ['writ.tenant', 'writ.state'],
    from: 'spawn-budget',
    about: 'Agents of open pools: slot holders, paused, or waiting; the same on every replica',
  },
  slotChanges: {
    name: 'writ.slots.changes',
    kind: 'counter',
    unit: '{agent}',
    labels: ['writ.event', 'writ.state'],
    from: 'spawn-budget',
    about: 'Agents that lost their slot or got one back, and waits that began or ended, by event',
  },
  tokens: {
    name: 'writ.meter.tokens',
    kind: 'counter',
    unit: '{token}',
    labels: ['writ.tenant', ATTR_GEN_AI_REQUEST_MODEL, ATTR_GEN_AI_TOKEN_TYPE],
    from: 'execution-meter',
    about: 'Tokens settled on tabs',
  },
  cost: {
    name: 'writ.meter.cost',
    kind: 'counter',
    unit: 'n{USD}',
    labels: ['writ.tenant', ATTR_GEN_AI_REQUEST_MODEL],
    from: 'execution-meter',
    about: 'Cost settled on tabs, in nano-USD',
  },
  budgetRefusals: {
    name: 'writ.meter.refusals',
    kind: 'counter',
    unit: '{request}',
    labels: ['writ.tenant', 'writ.level', 'writ.dimension'],
    from: 'execution-meter',
    about: 'Requests rejected by a cap, by level and dimension',
    zero: {
      'writ.level': ['agent', 'run', 'session', 'tenant_day', 'tenant_month'],
      'writ.dimension': ['tokens', 'cost', 'turns'],
    },
  },
  nearBudget: {
    name: 'writ.meter.near_budget',
    kind: 'counter',
    unit: '{request}',
    labels: ['writ.tenant'],
    from: 'execution-meter',
    about: 'Settled attempts of model calls after which a budget is nearly exhausted',
    zero: {},
  },
  debts: {
    name: 'writ.meter.debts',
    kind: 'counter',
    unit: '{attempt}',
    labels: ['writ.tenant', 'writ.dimension'],
    from: 'execution-meter',
    about:
      'Settlements (of attempts and reservations, and consumed spending) after which the settled amount of a level exceeds a cap',
    zero: { 'writ.dimension': ['tokens', 'cost', 'turns'] },
  },
  impossibleUsage: {
    name: 'writ.meter.impossible_usage',
    kind: 'counter',
    unit: '{attempt}',
    labels: [ATTR_GEN_AI_REQUEST_MODEL],
    from: 'execution-meter',
    about:
      'Attempts whose reported usage contradicts the request or the answer, and is estimated instead',
  },
  genAiTokens: {
    name: 'gen_ai.client.token.usage',
    kind: 'histogram',
    unit: '{token}',
    labels: [...CHAT_LABELS, ATTR_GEN_AI_TOKEN_TYPE],
    from: 'execution-meter',
    about: 'Tokens of an attempt, as reported by the provider',
    buckets: TOKENS,
  },
  genAiSeconds: {
    name: 'gen_ai.client.operation.duration',
    kind: 'histogram',
    unit: 's',
    labels: [...CHAT_LABELS, 'error.type'],
    from: 'execution-meter',
    about: 'Duration of attempts of model calls',
    buckets: SECONDS,
  },
  toolCalls: {
    name: 'writ.tool.calls',
    kind: 'counter',
    unit: '{call}',
    labels: ['writ.tenant', 'writ.tool', 'writ.status'],
    from: 'tool-gateway',
    about: 'Tool calls with an outcome, including rejected calls',
  },
  toolSeconds: {
    name: 'writ.tool.call.duration',
    kind: 'histogram',
    unit: 's',
    labels: ['writ.tool', 'writ.status'],
    from: 'tool-gateway',
    about: 'Duration of tool executions by status',
    buckets: SECONDS,
  },
  agents: {
    name: 'writ.agents',
    kind: 'gauge',
    unit: '{agent}',
    labels: ['writ.state'],
    from: 'agent-worker',
    about: 'Agents that have not ended, by state; the same on every replica',
  },
  leases: {
    name: 'writ.agents.leases',
    kind: 'counter',
    unit: '{lease}',
    labels: ['writ.resumed'],
    from: 'agent-worker',
    about: 'Leases acquired; `writ.resumed` is true when the agent had run before',
  },
  leaseEnds: {
    name: 'writ.agents.lease_ends',
    kind: 'counter',
    unit: '{lease}',
    labels: ['writ.outcome'],
    from: 'agent-worker',
    about:
      'Leases that ended, by outcome; the outcome is `lost` when another worker claimed the agent',
  },
  steps: {
    name: 'writ.agents.steps',
    kind: 'counter',
    unit: '{step}',
    labels: ['writ.tenant', 'writ.status'],
    from: 'agent-worker',
    about: 'Steps that ended, by review decision or stop reason',
  },
  guardrails: {
    name: 'writ.agents.guardrail_trips',
    kind: 'counter',
    unit: '{trip}',
    labels: ['writ.guardrail'],
    from: 'agent-worker',
    about: 'Guardrails that tripped',
    zero: { 'writ.guardrail': ['stuck', 'max_tokens', 'near_budget', 'middleware'] },
  },
} as const satisfies Readonly<Record<string, MetricRow>>;

/** The key of a metric in code. */
export type MetricKey = keyof typeof METRICS;

/** The metrics of one kind. */
export type MetricsOfKind<K extends MetricRow['kind']> = {
  [Key in MetricKey]: (typeof METRICS)[Key]['kind'] extends K ? Key : never;
}[MetricKey];
