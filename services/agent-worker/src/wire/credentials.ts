import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { AgentCredentials as CredentialsMessage } from '@writ/contracts/writ/supervision/v1/credentials_pb';
import type { AgentCredentials } from '../domain/agent/credentials.ts';

/** Converts an agent's tokens. */
export function credentialsFrom(message: CredentialsMessage): AgentCredentials {
  return {
    supervisor: message.supervisorToken,
    spawnBudget: message.spawnBudgetToken,
    executionMeter: message.executionMeterToken,
    toolGateway: message.toolGatewayToken,
    expiresAt: message.expireTime === undefined ? 0 : timestampMs(message.expireTime),
  };
}
