import { join } from 'node:path';
import { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { type ServiceName, serviceTokens } from '@writ/identity';
import { createRpcClient } from '@writ/rpc';
import type { Telemetry } from '@writ/telemetry';
import {
  type AgentCallOptions,
  createCallOptions,
  createCounter,
  openBaselineSigners,
} from './counter.ts';
import { startEchoServices } from './echo-services.ts';
import { createMessages } from './messages.ts';
import type { BaselineStores } from './stores.ts';

/** The agent that makes the steps, and its progress. */
interface StepAgent {
  readonly callOptions: AgentCallOptions;
  steps: number;
}

/** Maximum number of concurrent steps. */
const MAX_AGENTS = 64;

/**
 * Starts the echo services and returns the echo step: the messages of a governed step without its
 * processing. It includes
 *
 * - Generate, ReviewAction and CallTool in sequence with the worker's call options: each agent has its own
 *   token, slot grant and epoch; the calls pass the authentication and validation of the services and have
 *   the messages of the first to the `limit`th step of a run that counts, with answers of realistic length;
 *   the services verify each token once and cache the result;
 * - the streamed HTTP request to the model in the handler of Generate;
 * - two, one and two commits in these calls and one commit of the caller.
 *
 * It excludes signing, policy rules, digests, reads, events, the outbox relay, the audit chain, grant
 * renewal and tools; the journal is the one commit.
 */
export async function createEchoStep(
  { folder, limit }: { readonly folder: string; readonly limit: number },
  stores: BaselineStores,
  telemetry: Telemetry,
): Promise<() => Promise<void>> {
  const signers = await openBaselineSigners(join(folder, 'baseline-keys'));
  const messages = await createMessages(signers, createCounter(limit), limit);
  const addresses = await startEchoServices({ folder, stores, telemetry, signers, messages });
  const to = (audience: ServiceName, address: string) => ({
    address,
    telemetry,
    serviceToken: serviceTokens(signers.worker, { audience, replica: 'worker-1' }),
  });
  const meter = createRpcClient(ModelService, to('execution-meter', addresses.meter));
  const supervisor = createRpcClient(ReviewService, to('supervisor', addresses.supervisor));
  const gateway = createRpcClient(ToolGatewayService, to('tool-gateway', addresses.gateway));
  const free: StepAgent[] = [];
  for (let agent = 0; agent < MAX_AGENTS; agent += 1) {
    free.push({ callOptions: await createCallOptions(signers, createCounter(limit)), steps: 0 });
  }
  const step = async ({ callOptions, steps }: StepAgent): Promise<void> => {
    const stepMessages = messages[steps % limit];
    if (stepMessages === undefined)
      throw new Error(`No messages are prepared for step ${steps % limit}.`);
    let isFinished = false;
    for await (const { chunk } of meter.generate(stepMessages.generate, callOptions.toMeter)) {
      isFinished = chunk.case === 'finished';
    }
    if (!isFinished) throw new Error('A stream of the baseline ended without an answer.');
    const { decision } = await supervisor.reviewAction(
      stepMessages.review,
      callOptions.toSupervisor,
    );
    const writ = decision?.writ ?? '';
    await gateway.callTool({ ...stepMessages.call, writ }, callOptions.toGateway);
    await stores.worker();
  };
  return async () => {
    // Last in, first out, so that only as many agents are used as there are concurrent steps.
    const agent = free.pop();
    if (agent === undefined) throw new Error(`More than ${MAX_AGENTS} concurrent steps.`);
    try {
      await step(agent);
    } finally {
      agent.steps += 1;
      free.push(agent);
    }
  };
}
