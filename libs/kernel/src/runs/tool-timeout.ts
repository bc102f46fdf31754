/** Longest timeout of a tool, ms (TG-6). */
export const MAX_TOOL_TIMEOUT_MS = 3_600_000;

/**
 * Timeout of one tool call at its caller, ms, including the wait for a slot of its source. It is longer than the timeout of
 * every tool, because the gateway cancels a tool that may run again when its last caller leaves.
 */
export const TOOL_CALL_TIMEOUT_MS = 2 * MAX_TOOL_TIMEOUT_MS;
