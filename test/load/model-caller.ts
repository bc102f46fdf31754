/** A worker: makes the call that it is ordered, and answers with what it was told. */
import { flushCompileCache } from 'node:module';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { createRpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import { generate, type ModelCall } from './generate.ts';
import type { Credentials } from './meter-stage.ts';

/** What a worker needs for one call. */
export interface ModelOrder extends ModelCall, Credentials {
  readonly address: string;
  readonly serviceToken: string;
}

/** What it was told. */
export interface ModelAnswer {
  readonly text: string;
  readonly replayed: boolean;
  readonly attempts: number;
}

process.on('message', (message) => {
  void answer(message as ModelOrder);
});
process.send?.('ready');
// It ends by kill -9, which would leave the next process nothing.
flushCompileCache();

async function answer({ address, serviceToken, ...order }: ModelOrder): Promise<void> {
  const models = createRpcClient(ModelService, {
    address,
    telemetry: createTelemetry({ service: 'agent-worker', logLevel: 'silent' }),
    serviceToken: async () => serviceToken,
  });
  const { agentToken, slotGrant, epoch } = order;
  const { message, replayed, attempts } = await generate(models, order, {
    agentToken,
    slotGrant,
    epoch,
  });
  const text = (message?.parts ?? [])
    .map(({ kind }) => (kind.case === 'text' ? kind.value : ''))
    .join('');
  process.send?.({ text, replayed, attempts } satisfies ModelAnswer);
}
