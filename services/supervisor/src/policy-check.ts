import type { YamlInput } from '@writ/config';
import { UnavailableError } from '@writ/kernel';
import { formatProblem, loadPolicy, PolicyError } from '@writ/policy';
import type { Logger } from '@writ/telemetry';
import type { ToolGatewayPeer } from './peers/tool-gateway.ts';
import { readPolicyText } from './policy-file.ts';

/**
 * Checks the rules in force against the arguments of the gateway's tools, once the gateway has said
 * which there are. Mistakes are logged with file, line and column: a rule that reads an argument that
 * no tool has blocks what it is asked about, so nothing is let through meanwhile (SV-3, SYS-4).
 * @returns a sweep that has done its work after the first answer
 */
export function policyCheck(
  policy: YamlInput,
  gateway: Pick<ToolGatewayPeer, 'toolSchemas'>,
  log: Logger,
): () => Promise<void> {
  let isDone = false;
  return async () => {
    if (isDone) return;
    const toolSchemas = await schemasOf(gateway);
    if (toolSchemas === undefined) return;
    isDone = true;
    const { text, file } = await readPolicyText(policy);
    try {
      const { warnings } = loadPolicy(text, { file, toolSchemas });
      for (const warning of warnings) log.warn(formatProblem(warning));
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      for (const problem of error.problems) log.error(formatProblem(problem));
    }
  };
}

async function schemasOf(gateway: Pick<ToolGatewayPeer, 'toolSchemas'>) {
  try {
    return await gateway.toolSchemas();
  } catch (error) {
    if (error instanceof UnavailableError) return undefined;
    throw error;
  }
}
