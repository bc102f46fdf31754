/** A worker that makes one model call per request and returns the answer. */
import { flushCompileCache } from 'node:module';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { generate, type ModelCall } from './generate.ts';
import type { Credentials } from './meter-harness.ts';

/** The parameters of one model call. */
export interface ModelRequest extends ModelCall, Credentials {
  readonly address: string;
  readonly serviceToken: string;
}

/** The answer of the meter. */
export interface ModelAnswer {
  readonly text: string;
  readonly replayed: boolean;
  readonly attempts: number;
}

process.on('message', (message) => {
  void answer(message as ModelRequest);
});
process.send?.('ready');
// kill -9 ends this process, so the compile cache is written now.
flushCompileCache();

async function answer({ address, serviceToken, ...call }: ModelRequest): Promise<void> {
  const models = createRpcClient(ModelService, {
    address,
    telemetry: createTelemetry({ service: 'agent-worker', logLevel: 'silent' }),
    serviceToken: async () => serviceToken,
  });
  const { agentToken, slotGrant, epoch } = call;
  const { message, replayed, attempts } = await generate(models, call, {
    agentToken,
    slotGrant,
    epoch,
  });
  const text = (message?.parts ?? [])
    .map(({ kind }) => (kind.case === 'text' ? kind.value : ''))
    .join('');
  process.send?.({ text, replayed, attempts } satisfies ModelAnswer);
}
