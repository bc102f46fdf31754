/** Longest timeout of a tool, ms (TG-6). */
export const MAX_TOOL_TIMEOUT_MS = 3_600_000;

/**
 * Client timeout of one tool call, ms, including the wait for a slot of the tool source. It is longer than the timeout
 * of every tool, because the gateway cancels a read-only or idempotent call when its last caller disconnects.
 */
export const TOOL_CALL_TIMEOUT_MS = 2 * MAX_TOOL_TIMEOUT_MS;
