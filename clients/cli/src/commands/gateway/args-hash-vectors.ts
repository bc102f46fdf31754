import { readFileSync } from 'node:fs';
import { sha256Hex } from '@writ/kernel';
import type { CallFields } from './table.ts';

/** A call whose arguments are those of a vector. */
export interface VectorCall {
  readonly name: string;
  readonly call: CallFields;
  /** Whether a call before it has the same hash; calls that have none go first. */
  readonly isRepeat: boolean;
  readonly argsHash: string;
}

/**
 * Two calls for each of the shared vectors: its arguments as they are, and as its own canonical text
 * spells them (TG-4).
 */
export function readVectorCalls(file: string): readonly VectorCall[] {
  const { vectors } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly vectors: readonly { name: string; args: unknown; text: string; hash: string }[];
  };
  const seen = new Set<string>();
  return vectors.flatMap(({ name, args, text, hash }, at) =>
    [`{"value":${JSON.stringify(args)}}`, `{ "value" : ${text} }`].map((spelled, spelling) => {
      const isRepeat = seen.has(hash);
      seen.add(hash);
      return {
        name: `${name}, spelling ${spelling + 1}`,
        call: { tool: 'echo', call_id: `v-${at}-${spelling}`, arguments_json: spelled },
        isRepeat,
        argsHash: sha256Hex(`{"value":${text}}`).slice(0, 12),
      };
    }),
  );
}
