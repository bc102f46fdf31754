import { isJsonObject, type JsonObject, type JsonValue, omitUndefined } from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Message } from '../../domain/agent/message.ts';
import type { LlmRequest } from '../../domain/calls/model-call.ts';
import type { ToolInfo } from '../../domain/calls/tool-call.ts';
import type { HistoryEntry } from './history.ts';

/** Number of latest steps whose summaries the prompt contains. */
const RECENT = 3;

/** Maximum number of steps in the prompt that composes the final answer; earlier steps are only counted. */
const COMPOSED_FROM = 32;

/** The task of an agent. */
export interface Task {
  readonly goal: string;
  /** Structured payload of the request, if any. */
  readonly data?: JsonObject;
}

/** Returns the task of a message. */
export function taskOf({ text, dataJson }: Message): Task {
  const data: JsonValue = JSON.parse(dataJson === '' ? '{}' : dataJson);
  const hasData = isJsonObject(data) && Object.keys(data).length > 0;
  return { goal: text, ...(hasData && { data }) };
}

/**
 * Builds the prompt for the next action: goal, state, summaries of the last three steps, and tools
 * (AG-2). Only the last step is included in full, so that the prompt does not grow with the run.
 */
export function decideRequest(
  manifest: AgentManifest,
  task: Task,
  history: readonly HistoryEntry[],
  tools: readonly ToolInfo[],
): LlmRequest {
  const payload = {
    ...task,
    state_summary: stateSummary(history),
    recent_step_summaries: history.slice(-RECENT).map(stepSummary),
    available_tools: toolCatalog(tools),
  };
  return request(manifest, manifest.instructions, payload, {
    json: manifest.model.jsonMode,
    requireContent: false,
  });
}

/**
 * Builds the prompt that composes the final answer from the goal and the end of the history (AG-2).
 */
export function synthesisRequest(
  manifest: AgentManifest,
  task: Task,
  history: readonly HistoryEntry[],
): LlmRequest {
  const instructions = manifest.finalInstructions || manifest.instructions;
  const shape = { json: false, requireContent: true };
  const { last_step: _, ...before } = stateSummary(history);
  const payload = {
    ...task,
    ...(history.length > COMPOSED_FROM && { state_summary: before }),
    history: history.slice(-COMPOSED_FROM),
  };
  return request(manifest, instructions, payload, shape);
}

function request(
  { model }: AgentManifest,
  instructions: string,
  payload: object,
  shape: Pick<LlmRequest, 'json' | 'requireContent'>,
): LlmRequest {
  return {
    model: model.model,
    messages: [
      ...(instructions === '' ? [] : [{ role: 'system', text: instructions } as const]),
      { role: 'user', text: JSON.stringify(payload) },
    ],
    temperature: model.temperature ?? 0,
    ...omitUndefined({ maxOutputTokens: model.maxOutputTokens, timeoutMs: model.timeoutMs }),
    ...shape,
  };
}

function stateSummary(history: readonly HistoryEntry[]) {
  return {
    steps_completed: history.length,
    tools_used: counted(
      history.flatMap(({ action }) => (action?.kind === 'tool' ? [String(action.name)] : [])),
    ),
    supervisor_decisions: counted(history.map(({ supervisor }) => supervisor.decision)),
    last_step: history.at(-1) ?? null,
  };
}

/** Counts occurrences, because a list would grow with every step. */
function counted(names: readonly string[]): JsonObject {
  return Object.fromEntries(
    [...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]),
  );
}

function stepSummary(entry: HistoryEntry) {
  return {
    step: entry.step,
    proposed_tool: entry.action?.name ?? null,
    supervisor_decision: entry.supervisor.decision,
    executed_tool: entry.executed_action?.name ?? null,
    executed_from: entry.executed_from,
    observation_status: entry.observation.status ?? null,
  };
}

/** Summarises tools for the prompt: a type per argument instead of the schema. */
function toolCatalog(tools: readonly ToolInfo[]): JsonObject[] {
  return tools.map(({ name, description, inputSchemaJson }) => ({
    name,
    description,
    args: argumentSummary(inputSchemaJson),
  }));
}

function argumentSummary(inputSchemaJson: string): JsonObject {
  const schema: JsonValue = JSON.parse(inputSchemaJson === '' ? '{}' : inputSchemaJson);
  if (!isJsonObject(schema) || !isJsonObject(schema.properties)) return {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.fromEntries(
    Object.entries(schema.properties).map(([name, property]) => {
      const mayBeMissing = !required.includes(name) || isFillable(property);
      return [name, `${mayBeMissing ? 'optional ' : ''}${typeOf(property)}`];
    }),
  );
}

function isFillable(property: JsonValue): boolean {
  return isJsonObject(property) && property.fillable === true;
}

function typeOf(property: JsonValue): string {
  if (!isJsonObject(property)) return 'any';
  const { type, enum: values, decimals } = property;
  if (Array.isArray(values))
    return `one of ${values.map((value) => JSON.stringify(value)).join(', ')}`;
  if (type === 'number' && typeof decimals === 'number') {
    return `number with at most ${decimals} decimals`;
  }
  if (typeof type === 'string') return type;
  return Array.isArray(type) ? type.join(' or ') : 'any';
}
