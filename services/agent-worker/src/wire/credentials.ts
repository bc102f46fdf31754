import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { AgentCredentials as CredentialsMessage } from '@writ/contracts/writ/supervision/v1/credentials_pb';
import type { AgentCredentials } from '../domain/agent/credentials.ts';
import type { OwnTime } from '../domain/agent/peer-time.ts';

/** Converts an agent's tokens; their expiry on the supervisor's clock becomes an expiry on the local clock. */
export function credentialsFrom(message: CredentialsMessage, ownTime: OwnTime): AgentCredentials {
  return {
    supervisor: message.supervisorToken,
    spawnBudget: message.spawnBudgetToken,
    executionMeter: message.executionMeterToken,
    toolGateway: message.toolGatewayToken,
    expiresAt: message.expireTime === undefined ? 0 : ownTime(timestampMs(message.expireTime)),
  };
}
