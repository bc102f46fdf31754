import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  ChatRole,
  type ContentPartSchema,
  EndReason as ContractEnd,
  type FinishedSchema,
} from '@writ/contracts/writ/model/v1/model_pb';
import type { GenerateResponseSchema } from '@writ/contracts/writ/model/v1/model_service_pb';
import type { CallChunk, CallEnd } from '../domain/chat/call-chunk.ts';
import type { AnswerBlock, ChatAnswer, EndReason } from '../domain/chat/chat.ts';
import { usageMessage } from './tab.ts';

const END_REASONS: Readonly<Record<EndReason, ContractEnd>> = {
  end_turn: ContractEnd.END_TURN,
  tool_use: ContractEnd.TOOL_USE,
  max_tokens: ContractEnd.MAX_TOKENS,
  content_filter: ContractEnd.CONTENT_FILTER,
};

/** Converts a chunk of a call to a GenerateResponse. */
export function chunkMessage(chunk: CallChunk): MessageInitShape<typeof GenerateResponseSchema> {
  switch (chunk.type) {
    case 'attempt': {
      const { attempt, providerModel } = chunk;
      return { chunk: { case: 'attemptStarted', value: { attempt, providerModel } } };
    }
    case 'text':
      return { chunk: { case: 'textDelta', value: { text: chunk.text } } };
    case 'native':
      return { chunk: { case: 'nativeEvent', value: { dataJson: Buffer.from(chunk.json) } } };
    case 'finished':
      return { chunk: { case: 'finished', value: finishedMessage(chunk) } };
  }
}

function finishedMessage(end: CallEnd): MessageInitShape<typeof FinishedSchema> {
  const { answer, failure } = end;
  return {
    ...(answer && {
      message: answerMessage(answer),
      endReason: END_REASONS[answer.endReason],
      providerModel: answer.providerModel,
      responseId: answer.responseId ?? '',
    }),
    ...(failure && { failure }),
    usage: usageMessage(end.usage),
    costNanoUsd: end.cost,
    estimated: end.estimated,
    attempts: end.attempts,
    replayed: end.replayed,
    nearBudget: end.nearBudget,
    warnings: [...end.warnings],
    runCostNanoUsd: end.runCost,
    fittedMaxOutputTokens: end.fittedOutput,
    events: [...end.events],
  };
}

function answerMessage({ text, toolUses, blocks }: ChatAnswer) {
  const calls = toolUses.map(({ id, tool, argumentsJson }) => ({
    kind: { case: 'toolUse' as const, value: { toolUseId: id, tool, argumentsJson } },
  }));
  const parts =
    blocks === undefined
      ? [...(text === '' ? [] : [textPart(text)]), ...calls]
      : orderedParts(blocks, calls);
  return { role: ChatRole.ASSISTANT, parts };
}

type PartInit = MessageInitShape<typeof ContentPartSchema>;

function orderedParts(blocks: readonly AnswerBlock[], calls: readonly PartInit[]): PartInit[] {
  const rest = calls.values();
  return blocks.flatMap((block): PartInit[] => {
    if ('text' in block) return [textPart(block.text)];
    if ('isCall' in block) return [...rest.take(1)];
    const value = Buffer.from(JSON.stringify(block.thinking));
    return [{ kind: { case: 'thinkingJson', value } }];
  });
}

function textPart(value: string) {
  return { kind: { case: 'text' as const, value } };
}
