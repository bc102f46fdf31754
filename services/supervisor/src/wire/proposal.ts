import { toJson } from '@bufbuild/protobuf';
import type { ReviewActionRequest } from '@writ/contracts/writ/review/v1/review_service_pb';
import {
  type SpawnChildRequest,
  SpawnChildRequestSchema,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { InvalidRequestError, type JsonObject } from '@writ/kernel';
import type { Proposal, ProposedContent } from '../domain/review/proposal.ts';

/**
 * Reads a proposal.
 * @throws InvalidRequestError DELEGATION_REQUIRES_SPAWN, FINAL_ACTION_REQUIRED, FIELD_REQUIRED naming the field
 */
export function proposalFrom(request: ReviewActionRequest): Proposal {
  const { callId, modelCallId, composed, partial } = request;
  const content = contentFrom(request);
  // Only a final is exempt from the step count and the slot grant.
  if (composed && content.kind !== 'final') throw notFinal('composed');
  if (partial && content.kind !== 'final') throw notFinal('partial');
  return { callId, modelCallId, content, composed, partial };
}

function contentFrom({ proposal }: ReviewActionRequest): ProposedContent {
  if (proposal.case === 'rawText') return { kind: 'raw_text', text: proposal.value };
  const kind = proposal.value?.kind;
  switch (kind?.case) {
    case 'tool':
      return { kind: 'tool', tool: kind.value.tool, argumentsJson: kind.value.argumentsJson };
    case 'clientTool': {
      const { tool, argumentsJson, definitionDigest } = kind.value;
      return { kind: 'client_tool', tool, argumentsJson, definitionDigest };
    }
    case 'final':
      return { kind: 'final', answer: kind.value.answer };
    case 'delegation':
      throw new InvalidRequestError(
        'DELEGATION_REQUIRES_SPAWN',
        'action.delegation is not accepted here; use SpawnChild, which reviews the delegation and creates the child.',
        { field: 'action.delegation' },
      );
    case undefined:
      throw new InvalidRequestError('FIELD_REQUIRED', 'raw_text or action is required.', {
        field: 'proposal',
      });
  }
}

function notFinal(field: string): InvalidRequestError {
  return new InvalidRequestError(
    'FINAL_ACTION_REQUIRED',
    `${field} requires a final answer in action.final.`,
    { field },
  );
}

/**
 * The proposal of a SpawnChild request. Its digest covers the request without receipts, observations and events, which
 * differ when a worker repeats the request.
 */
export function delegationFrom(request: SpawnChildRequest): Proposal {
  const { agent = '', task = '' } = request.delegation ?? {};
  const asked = { ...request, receipts: [], observations: [], events: [] };
  const terms = toJson(SpawnChildRequestSchema, asked) as JsonObject;
  return {
    callId: request.callId,
    modelCallId: '',
    content: { kind: 'delegation', agent, task, terms },
    composed: false,
    partial: false,
  };
}
