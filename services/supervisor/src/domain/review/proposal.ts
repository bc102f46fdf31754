import {
  type AgentKind,
  type ArgumentContract,
  canonicalDigest,
  isJsonObject,
  isWritError,
  type JsonObject,
  type JsonValue,
  type ParsedAction,
  parseJsonStrict,
  parseNativeCall,
  parseWorkerAction,
  shownName,
  validateWorkerAction,
} from '@writ/kernel';
import { actionName, type RecordedAction } from '../result/recorded-action.ts';
import type { ReviewedTool } from './reviewed-tool.ts';

/** The content of a proposal. */
export type ProposedContent =
  | { readonly kind: 'raw_text'; readonly text: string }
  | { readonly kind: 'tool'; readonly tool: string; readonly argumentsJson: string }
  | {
      readonly kind: 'client_tool';
      readonly tool: string;
      readonly argumentsJson: string;
      readonly definitionDigest: string;
    }
  | { readonly kind: 'final'; readonly answer: string }
  | {
      readonly kind: 'delegation';
      readonly agent: string;
      readonly task: string;
      /** All other fields of the request, so that the digest covers them. */
      readonly terms: JsonObject;
    };

/** The parsed action, or why the proposal is invalid, with its raw value. */
export type ReadAction =
  | { readonly ok: true; readonly action: RecordedAction }
  | Extract<ParsedAction, { readonly ok: false }>;

/** One proposal (SV-1). */
export interface Proposal {
  readonly callId: string;
  /** Empty when no model call produced it. */
  readonly modelCallId: string;
  readonly content: ProposedContent;
  /** A final composed after the step limit was reached. */
  readonly composed: boolean;
  /** A final with the partial result of a paused agent. */
  readonly partial: boolean;
}

/** The properties of an agent that determine which proposals it may make. */
export interface Proposer {
  readonly kind: AgentKind;
  readonly targets: readonly string[];
}

/** Digest of a proposal without receipts and observations, so that a reused call_id is detected. */
export function proposalDigest(proposal: Proposal): string {
  const { modelCallId, content, composed, partial } = proposal;
  return canonicalDigest({ modelCallId, content: { ...content }, composed, partial });
}

/**
 * Parses a proposal as an action (SV-2): raw model text, or a native call. To the model, a delegation is the tool
 * `handoff_<agent>` with the argument `task` (AG-3).
 * @param tool the gateway's definition of the named tool; undefined when there is none
 * @param proposer the kind of the agent, and the agents that it may delegate to
 */
export function readProposal(
  { content }: Proposal,
  tool: ReviewedTool | undefined,
  proposer: Proposer,
): ReadAction {
  if (content.kind === 'delegation') return readDelegation(content, proposer.targets);
  if (content.kind === 'client_tool') return readClientTool(content, proposer);
  // An approved answer would end the run, but the program of an external agent must end its run with CloseRun (AP-1).
  const isAnswer = content.kind === 'final' || content.kind === 'raw_text';
  if (isAnswer && proposer.kind === 'external') {
    return { ...refused(`${content.kind}_not_allowed:external`), raw: { kind: content.kind } };
  }
  return parse(content, (name) => (name === tool?.name ? tool.contract : undefined));
}

/**
 * Returns the name of the gateway tool that a proposal calls, even if the call is invalid; undefined when the proposal
 * is not a tool call.
 */
export function namedTool({ content }: Proposal): string | undefined {
  if (content.kind === 'delegation' || content.kind === 'client_tool') return undefined;
  let named: string | undefined;
  parse(content, (name) => {
    named = name;
    return undefined;
  });
  return named;
}

/**
 * Returns the model's text if the proposal is raw text, or the raw value of any other invalid proposal as JSON;
 * undefined for any other valid proposal (SV-7).
 */
export function rawText({ content }: Proposal, parsed: ReadAction): string | undefined {
  if (content.kind === 'raw_text') return content.text;
  return parsed.ok ? undefined : JSON.stringify(parsed.raw);
}

function readDelegation(
  { agent, task }: Extract<ProposedContent, { kind: 'delegation' }>,
  targets: readonly string[],
): ReadAction {
  const action = { kind: 'delegation', agent, task: task.trim() } as const;
  const name = actionName(action);
  if (!targets.includes(agent)) return { ...refused(`unknown_tool:${name}`), raw: { ...action } };
  if (action.task !== '') return { ok: true, action };
  return { ...refused(`missing_required_arg:${name}:task`), raw: { ...action } };
}

/**
 * Parses a call of a tool that the program of an external agent executes. Rejects the calls of other agents, which
 * would execute the tool without a writ (AP-5).
 */
function readClientTool(
  { tool, argumentsJson, definitionDigest }: Extract<ProposedContent, { kind: 'client_tool' }>,
  { kind }: Proposer,
): ReadAction {
  const shown = { kind: 'client_tool', name: shownName(tool) };
  if (kind !== 'external') return { ...refused(`client_tool_not_allowed:${kind}`), raw: shown };
  const args = jsonOf(argumentsJson === '' ? '{}' : argumentsJson);
  if (args === undefined) {
    return { ...refused('non_json'), raw: { ...shown, args: argumentsJson } };
  }
  if (!isJsonObject(args)) return { ...refused('bad_tool_args'), raw: { ...shown, args } };
  const definition = { definition_digest: definitionDigest };
  return { ok: true, action: { kind: 'client_tool', name: tool, args, ...definition } };
}

function jsonOf(text: string): JsonValue | undefined {
  try {
    return parseJsonStrict(text, { field: 'action.client_tool.arguments_json' });
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

function refused(why: string) {
  return { ok: false, stopReason: `invalid_action:${why}` } as const;
}

function parse(
  content: Exclude<ProposedContent, { kind: 'delegation' | 'client_tool' }>,
  contractOf: (name: string) => ArgumentContract | undefined,
): ParsedAction {
  switch (content.kind) {
    case 'raw_text':
      return parseWorkerAction(content.text, contractOf);
    case 'tool':
      return parseNativeCall(content.tool, content.argumentsJson, contractOf);
    case 'final':
      return validateWorkerAction({ kind: 'final', answer: content.answer }, contractOf);
  }
}
