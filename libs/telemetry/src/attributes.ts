/**
 * Span attributes and log fields that Writ defines. Their values are ids, counts and enum values, never content:
 * captured prompts and responses use the attributes of the GenAI conventions.
 */

/** The tenant to which the span belongs (SYS-6). */
export const ATTR_WRIT_TENANT = 'writ.tenant';
/** The run: one execution tree (SUP-2). */
export const ATTR_WRIT_RUN_ID = 'writ.run_id';
/** The conversation (SUP-2). */
export const ATTR_WRIT_SESSION_ID = 'writ.session_id';
/** The agent's instance within its run (SUP-9). */
export const ATTR_WRIT_AGENT = 'writ.agent';
/** The agent's name from its manifest (SUP-9). */
export const ATTR_WRIT_AGENT_NAME = 'writ.agent_name';
/** The instance that spawned this agent. */
export const ATTR_WRIT_PARENT_AGENT = 'writ.parent_agent';
/** Depth in the supervision tree, the root being 0 (SUP-1). */
export const ATTR_WRIT_DEPTH = 'writ.depth';
/** The branch's priority by name (SUP-3). */
export const ATTR_WRIT_PRIORITY = 'writ.priority';
/** Epoch of the worker's lease (RT-2). */
export const ATTR_WRIT_EPOCH = 'writ.epoch';
/** The step of the agent, from 1. */
export const ATTR_WRIT_STEP = 'writ.step';
/** Deterministic id of a model call, tool call, review or spawn (RT-1). */
export const ATTR_WRIT_CALL_ID = 'writ.call_id';
/** Idempotency id of a mutating request. */
export const ATTR_WRIT_REQUEST_ID = 'writ.request_id';
/** Attempt of a model call, from 1 (EM-8). */
export const ATTR_WRIT_ATTEMPT = 'writ.attempt';
/** The tool proposed or executed. */
export const ATTR_WRIT_TOOL = 'writ.tool';
/** `tool`, `final`, `delegation` or `client_tool`; `invalid` for an action that cannot be parsed. */
export const ATTR_WRIT_ACTION_KIND = 'writ.action_kind';
/** Id of a review's decision (SV-1). */
export const ATTR_WRIT_DECISION_ID = 'writ.decision_id';
/** `approve`, `revise`, `block` or `escalate` (SV-1). */
export const ATTR_WRIT_DECISION = 'writ.decision';
/** The rule that decided (SV-3). */
export const ATTR_WRIT_RULE = 'writ.rule';
/** The rule's stable reason (SV-3). */
export const ATTR_WRIT_DECISION_REASON = 'writ.decision_reason';
/** Content hash of the policy (SV-3). */
export const ATTR_WRIT_POLICY_VERSION = 'writ.policy_version';
/** `original`, `supervisor_revised` or `human_revised` (SV-6). */
export const ATTR_WRIT_EXECUTED_FROM = 'writ.executed_from';
/** Id of an approval (SV-5). */
export const ATTR_WRIT_APPROVAL_ID = 'writ.approval_id';
/** State of a decided approval: `approved`, `rejected`, `expired` or `withdrawn`. */
export const ATTR_WRIT_APPROVAL_STATE = 'writ.approval_state';
/** Subject of the person who decided an approval. */
export const ATTR_WRIT_APPROVER = 'writ.approver';
/** The signal that an agent waited for, as in `waiting_for` of hook events (AG-7). */
export const ATTR_WRIT_WAITING_FOR = 'writ.waiting_for';
/** Subject of the client that sent a signal. */
export const ATTR_WRIT_SENDER = 'writ.sender';
/** The writ's id (jti), never the writ itself. */
export const ATTR_WRIT_WRIT_ID = 'writ.writ_id';
/** Id of a receipt (TG-8). */
export const ATTR_WRIT_RECEIPT_ID = 'writ.receipt_id';
/** Id of a reservation on a tab (EM-3). */
export const ATTR_WRIT_RESERVATION_ID = 'writ.reservation_id';
/** The cost of a model call, nano-USD (EM-4). */
export const ATTR_WRIT_COST_NANO_USD = 'writ.cost_nano_usd';
/** Whether the usage is an estimate (EM-8). */
export const ATTR_WRIT_USAGE_ESTIMATED = 'writ.usage_estimated';
/**
 * State of an approval, a notification, a slot or an agent; also a metric label, whose meaning depends on the metric.
 */
export const ATTR_WRIT_STATE = 'writ.state';
/** The stop reason of a run or an agent (SV-7). */
export const ATTR_WRIT_STOP_REASON = 'writ.stop_reason';
/** Id of a halt or freeze order (SV-9). */
export const ATTR_WRIT_ORDER_ID = 'writ.order_id';
/** A hook event's name (HK-1). */
export const ATTR_WRIT_EVENT = 'writ.event';
/** A hook event's derived id (HK-1). */
export const ATTR_WRIT_EVENT_ID = 'writ.event_id';
/** The internal peer called. */
export const ATTR_WRIT_PEER = 'writ.peer';
/** Whether the response is a recorded one (EM-7, TG-1). */
export const ATTR_WRIT_REPLAYED = 'writ.replayed';
