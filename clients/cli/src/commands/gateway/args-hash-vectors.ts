import { readFileSync } from 'node:fs';
import { sha256Hex } from '@writ/kernel';
import type { CallFields } from './table.ts';

/** A call with the arguments of a vector. */
export interface VectorCall {
  readonly name: string;
  readonly call: CallFields;
  /** Whether an earlier call has the same hash. */
  readonly isRepeat: boolean;
  readonly argsHash: string;
}

/**
 * Returns two calls for each shared vector: one with the arguments as given, one with their canonical JSON (TG-4).
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
