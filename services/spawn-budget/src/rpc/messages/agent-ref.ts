import type { AgentRef as AgentRefMessage } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { type AgentRef, assertId } from '@writ/kernel';

/**
 * The agent that a request names.
 * @throws InvalidRequestError INVALID_ID naming the field, when it names none
 */
export function agentRefOf(message: AgentRefMessage | undefined, field: string): AgentRef {
  return {
    name: assertId(message?.name, `${field}.name`),
    instance: assertId(message?.instance, `${field}.instance`),
  };
}
