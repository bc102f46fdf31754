import type { JsonObject } from '@bufbuild/protobuf';
import { isWritError } from '@writ/kernel';

/** Response of an RPC in proto field names; an error as `error`, `reason`, `field`, `message`. */
export interface Answer {
  readonly view: JsonObject;
  /** The receipt token; `view.receipt` has its claims. */
  readonly token?: string;
}

/** The response of `work`, or the error of the gateway as a response. */
export async function answered(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (!isWritError(error)) throw error;
    const { kind, reason, message, metadata } = error;
    return { view: { error: kind, reason, message, field: metadata.field ?? '' } };
  }
}
