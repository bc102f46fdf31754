import { join } from 'node:path';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { type ServiceName, serviceTokens } from '@writ/identity';
import { createRpcClient } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import { createCounter, createShown, openFloorSigners, type Shown } from './counter.ts';
import { startEchoes } from './echoes.ts';
import { createMessages } from './messages.ts';
import type { FloorStores } from './stores.ts';

/** Whose steps they are, and how far it is. */
interface Lane {
  readonly shown: Shown;
  steps: number;
}

/** The most steps at the same time. */
const LANES = 64;

/**
 * Starts what a step calls, and gives the echoed step: what a governed one exchanges, without what
 * governing it takes. In it are
 *
 * - Generate, ReviewAction and CallTool, one after the other, as the worker calls them: each agent with
 *   its token, slot grant and epoch, through the gate and validation of the services, with the messages
 *   of the first to the `limit`th step of a run that counts, and answers as long as the real ones;
 *   the gates verify each token once and remember it, as in the services;
 * - the question to the model over HTTP, streamed, asked by the handler of Generate;
 * - two, one and two commits in these calls and one of the caller's own.
 *
 * Not in it is all else: no signing, no rule, no digest, no reading of a row, no event, relay or chain
 * beside, no renewal of grants, no tool; and the journal is but that one commit.
 */
export async function createEchoedStep(
  { folder, limit }: { readonly folder: string; readonly limit: number },
  stores: FloorStores,
  telemetry: Telemetry,
): Promise<() => Promise<void>> {
  const signers = await openFloorSigners(join(folder, 'floor-keys'));
  const messages = await createMessages(signers, createCounter(limit), limit);
  const addresses = await startEchoes({ folder, stores, telemetry, signers, messages });
  const to = (audience: ServiceName, address: string) => ({
    address,
    telemetry,
    serviceToken: serviceTokens(signers.worker, { audience, replica: 'worker-1' }),
  });
  const meter = createRpcClient(ModelService, to('execution-meter', addresses.meter));
  const supervisor = createRpcClient(ReviewService, to('supervisor', addresses.supervisor));
  const gateway = createRpcClient(ToolGatewayService, to('tool-gateway', addresses.gateway));
  const free: Lane[] = [];
  for (let lane = 0; lane < LANES; lane += 1) {
    free.push({ shown: await createShown(signers, createCounter(limit)), steps: 0 });
  }
  const step = async ({ shown, steps }: Lane): Promise<void> => {
    const said = messages[steps % limit];
    if (said === undefined) throw new Error(`Nothing was prepared for step ${steps % limit}.`);
    let isFinished = false;
    for await (const { chunk } of meter.generate(said.generate, shown.toMeter)) {
      isFinished = chunk.case === 'finished';
    }
    if (!isFinished) throw new Error('A stream of the floor ended without an answer.');
    const { decision } = await supervisor.reviewAction(said.review, shown.toSupervisor);
    const writ = decision?.writ ?? '';
    await gateway.callTool({ ...said.call, writ }, shown.toGateway);
    await stores.worker();
  };
  return async () => {
    // The last one to be free goes first, so that as many agents act as there are steps at a time.
    const lane = free.pop();
    if (lane === undefined) throw new Error(`More than ${LANES} steps at the same time.`);
    try {
      await step(lane);
    } finally {
      lane.steps += 1;
      free.push(lane);
    }
  };
}
