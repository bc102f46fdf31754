import { readAgentWorkerConfig } from '@writ/agent-worker';
import { ConfigError } from '@writ/config';
import { omitUndefined } from '@writ/kernel';
import type { PlatformConfig } from '../config.ts';
import { checkFiles } from './check-files.ts';

/**
 * Checks the references between the files of a platform before its services start, because each service reads only its
 * own file. Does not import the modules of tools: the gateway imports them and creates their tools once.
 *
 * @throws ConfigError with the sentences that `writ doctor` prints (SYS-3)
 */
export async function checkStart(config: PlatformConfig): Promise<void> {
  const { env, agents, toolGatewayAddress } = config;
  const { WRIT_POLICY_FILE: policy, WRIT_TOOLS_FILE: tools, WRIT_MODELS_FILE: models } = env;
  // A setting that is not set is reported by the service that reads it.
  if (policy === undefined || tools === undefined || models === undefined) return;
  const findings = await checkFiles(
    {
      ...omitUndefined({ agents: env.WRIT_AGENTS_FILE }),
      ...(toolGatewayAddress === undefined && { tools }),
      policy,
      models,
      agentModules: readAgentWorkerConfig(env).agentModules,
    },
    { variables: env, importModules: true, ...(agents && { agents }) },
  );
  const problems = findings.flatMap(({ severity, text }) => (severity === 'error' ? [text] : []));
  if (problems.length > 0) throw new ConfigError('The configuration', problems);
}
