import {
  type ArgumentContract,
  canonicalDigest,
  type ParsedAction,
  parseNativeCall,
  parseWorkerAction,
  validateWorkerAction,
} from '@writ/kernel';
import type { ReviewedTool } from './reviewed-tool.ts';

/** What a worker proposes, as it came. */
export type ProposedContent =
  | { readonly kind: 'raw_text'; readonly text: string }
  | { readonly kind: 'tool'; readonly tool: string; readonly argumentsJson: string }
  | { readonly kind: 'final'; readonly answer: string };

/** One proposal (SV-1). */
export interface Proposal {
  readonly callId: string;
  /** Empty when it came from no model call. */
  readonly modelCallId: string;
  readonly content: ProposedContent;
  /** A final that was composed after the steps ran out. */
  readonly composed: boolean;
  /** A final that is the partial result of a paused agent. */
  readonly partial: boolean;
}

/** Digest of a proposal without what came along with it, so that a reused call_id is noticed. */
export function proposalDigest(proposal: Proposal): string {
  const { modelCallId, content, composed, partial } = proposal;
  return canonicalDigest({ modelCallId, content: { ...content }, composed, partial });
}

/**
 * Reads a proposal as an action (SV-2), whether it is raw model text or a native call.
 * @param tool the gateway's definition of the tool that it names; undefined when there is none
 */
export function readProposal({ content }: Proposal, tool: ReviewedTool | undefined): ParsedAction {
  return parse(content, (name) => (name === tool?.name ? tool.contract : undefined));
}

/** The tool that a proposal names, however it goes on; undefined when it is no tool call. */
export function namedTool({ content }: Proposal): string | undefined {
  let named: string | undefined;
  parse(content, (name) => {
    named = name;
    return undefined;
  });
  return named;
}

/** What the model said, for a proposal that was no action (SV-7). */
export function rawText({ content }: Proposal, parsed: ParsedAction): string | undefined {
  if (content.kind === 'raw_text') return content.text;
  return parsed.ok ? undefined : JSON.stringify(parsed.raw);
}

function parse(
  content: ProposedContent,
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
