import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type KeyPeer, startKeyPeer } from '@writ/testing';
import { SERVICE_MAINS } from '../load/program.ts';
import { openBench } from './bench-setup.ts';
import { compare } from './compare.ts';
import type { Operation } from './measure.ts';

/** A measured service and its operation. */
export interface BenchTarget {
  readonly service: 'spawn-budget' | 'execution-meter';
  /** Name of the operation, which makes two RPCs in sequence with one commit each. */
  readonly name: string;
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Prepares the service and returns the operation.
   * @param prefix prefix of the request ids
   */
  prepare(supervisor: KeyPeer, address: string, prefix: string): Promise<Operation>;
}

/** Options of a benchmark. */
export interface BenchOptions {
  /** Only for meter, spawn, review, steps, tool and agent-proxy: folder for CPU profiles; default no profiles. */
  readonly profileDir?: string | undefined;
  /** Only for two-step, distributed, peers, replicas, writers, scale and agent-proxy: number of rounds. */
  readonly rounds?: number;
  /** Only for two-step, distributed, peers, replicas, writers and scale: duration of each measurement in a round. */
  readonly seconds?: number;
  /**
   * Only for two-step, active-agents, distributed, peers, replicas, writers, scale and agent-proxy: folder of the
   * report.
   */
  readonly outDir?: string | undefined;
  /** Only for agent-proxy: whether the Portkey gateway is installed when it is missing. */
  readonly portkey?: boolean | undefined;
  /** Only for agent-proxy: whether LiteLLM is installed when it is missing. */
  readonly litellm?: boolean | undefined;
}

const ECHOES = 'echo of both RPCs';
const ECHOES_WITH_COMMITS = 'echoes + commits';
/** Minimum throughput relative to two echoes plus two commits. */
const MIN_RATIO = 0.6;

/**
 * Measures a service and its baselines, in separate processes: the same two RPCs with a handler that does nothing, and
 * with a handler that commits one row. Prints the figures and returns whether the throughput of the service is at least
 * {@link MIN_RATIO} times that of the baseline with commits.
 */
export async function bench(target: BenchTarget, { profileDir }: BenchOptions): Promise<boolean> {
  const stack = new AsyncDisposableStack();
  try {
    const { dir, start } = await openBench(stack, profileDir);
    const supervisor = await startKeyPeer('supervisor');
    stack.defer(() => supervisor.close());
    const echo = await start(fileURLToPath(new URL('same-rpc-server.ts', import.meta.url)), {
      ECHO_FILE: join(dir, 'echo.db'),
      ECHO_SERVICE: target.service,
      WRIT_SUPERVISOR_ADDRESS: supervisor.address,
    });
    const service = await start(SERVICE_MAINS[target.service], {
      WRIT_DATA: dir,
      WRIT_EXECUTION_METER_PORT: '0',
      WRIT_SPAWN_BUDGET_PORT: '0',
      WRIT_SUPERVISOR_ADDRESS: supervisor.address,
      WRIT_LOG_LEVEL: 'warn',
      ...target.env,
    });
    const operations = {
      [ECHOES]: await target.prepare(supervisor, echo.address, 'echo-'),
      [ECHOES_WITH_COMMITS]: await target.prepare(supervisor, echo.address, 'commit-'),
      [target.name]: await target.prepare(supervisor, service.address, ''),
    };
    const results = await compare(operations, {
      [ECHOES]: echo,
      [ECHOES_WITH_COMMITS]: echo,
      [target.name]: service,
    });
    return verdict(target.name, results.ratio(target.name, ECHOES_WITH_COMMITS, 64));
  } finally {
    await stack.disposeAsync();
  }
}

function verdict(name: string, ratio: number): boolean {
  const isEnough = ratio >= MIN_RATIO;
  const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
  console.log(
    `${isEnough ? 'PASS' : 'FAIL'}: ${name} reaches ${percent(ratio)} of the throughput of two echoes plus two commits at 64 in flight (minimum ${percent(MIN_RATIO)}).`,
  );
  return isEnough;
}
