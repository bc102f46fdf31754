import { isDeepStrictEqual } from 'node:util';
import { parseArguments } from '../../src/domain/call-arguments.ts';
import { judgeCall } from '../../src/domain/judge-call.ts';
import { createRegistry } from '../../src/domain/registry.ts';
import { compileTool } from '../../src/domain/tool.ts';
import { definition, writ } from '../definitions.ts';
import type { Payload } from './payloads.ts';

const tool = compileTool(definition());
const registry = createRegistry([tool]);
const order = writ({ definitionDigest: tool.digest });
const never = { calls: 0, lastCallId: '' };
const noCalls = { ofRun: 0, ofTool: never, ofSignature: never };

/** Largest length of a message. */
const MAX_MESSAGE = 4_096;

/**
 * Runs one argument text through the checks of a call. Compares the verdict with `expected`, and the parsed arguments
 * of an admitted text with JSON.parse.
 * @returns the problem; undefined when the verdict is correct
 */
export function judgePayload({ text, expected }: Payload): string | undefined {
  const verdict = judgeCall(order, registry, noCalls, parseArguments(text));
  if (Object.hasOwn(Object.prototype, 'admin')) return 'It changed Object.prototype.';
  if (verdict.kind === 'refuse') {
    if (expected === 'accepted') return `A valid call was refused: ${verdict.message}`;
    const { stopReason, message } = verdict;
    if (stopReason !== 'tool_bad_args:pay') return `It was refused for ${stopReason}.`;
    const isSentence = message.length <= MAX_MESSAGE && message.endsWith('.');
    return isSentence ? undefined : `The message is not a sentence: ${message.slice(0, 200)}`;
  }
  if (expected === 'refused') return 'An invalid call was admitted.';
  try {
    const plain = { ...(JSON.parse(text) as object) };
    return isDeepStrictEqual({ ...verdict.args }, plain) ? undefined : 'It was parsed differently.';
  } catch {
    return 'It is not JSON and was admitted.';
  }
}
