import { isDeepStrictEqual } from 'node:util';
import { judgeCall, parseArguments } from '../../src/domain/checks.ts';
import { createRegistry } from '../../src/domain/registry.ts';
import { compileTool } from '../../src/domain/tool.ts';
import { definition, writ } from '../definitions.ts';
import type { Payload } from './payloads.ts';

const tool = compileTool(definition());
const registry = createRegistry([tool]);
const order = writ({ definitionDigest: tool.digest });
const never = { calls: 0, lastCallId: '' };
const noCalls = { ofRun: 0, ofTool: never, ofSignature: never };

/** Longest sentence that a refusal may need. */
const MAX_MESSAGE = 4_096;

/**
 * Puts one argument text through the checks of a call, and holds the verdict against JSON.parse.
 * @returns what is wrong with the verdict; undefined when nothing is
 */
export function judgePayload({ text, expected }: Payload): string | undefined {
  const verdict = judgeCall(order, registry, noCalls, parseArguments(text));
  if (Object.hasOwn(Object.prototype, 'admin')) return 'It changed what all objects have.';
  if (verdict.kind === 'refuse') {
    if (expected === 'accepted') return `A good call was refused: ${verdict.message}`;
    const { stopReason, message } = verdict;
    if (stopReason !== 'tool_bad_args:pay') return `It was refused for ${stopReason}.`;
    const isSentence = message.length <= MAX_MESSAGE && message.endsWith('.');
    return isSentence ? undefined : `No sentence: ${message.slice(0, 200)}`;
  }
  if (expected === 'refused') return 'A bad call was let through.';
  try {
    const plain = { ...(JSON.parse(text) as object) };
    return isDeepStrictEqual({ ...verdict.args }, plain) ? undefined : 'It was read differently.';
  } catch {
    return 'It is no JSON, and was let through.';
  }
}
