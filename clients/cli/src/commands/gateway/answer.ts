import type { JsonObject } from '@bufbuild/protobuf';
import { isWritError } from '@writ/kernel';

/** What an RPC said, in the form of the contract; an error as `error`, `reason`, `field`, `message`. */
export interface Answer {
  readonly view: JsonObject;
  /** The receipt as it came; `view.receipt` holds its claims. */
  readonly token?: string;
}

/** The answer that `work` gives, or the error that the gateway answered with. */
export async function answered(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (!isWritError(error)) throw error;
    const { kind, reason, message, metadata } = error;
    return { view: { error: kind, reason, message, field: metadata.field ?? '' } };
  }
}
