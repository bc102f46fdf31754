import { ConfigError, type DocumentText, WatchedFile, type YamlInput } from '@writ/config';
import { UnavailableError } from '@writ/kernel';
import {
  formatProblem,
  loadPolicy,
  type Policy,
  PolicyError,
  type ToolSchemas,
} from '@writ/policy';
import type { Logger } from '@writ/telemetry';
import type { ToolGatewayPeer } from '../../peers/tool-gateway.ts';

type Tools = Pick<ToolGatewayPeer, 'toolSchemas'>;

/**
 * Reads the policy. At the start, the arguments that its rules read are not checked against the gateway's schemas,
 * because the gateway may start later; they are checked once the gateway answers, and errors are logged. A rule that
 * reads an argument which no tool has blocks the action (SYS-4).
 * @throws PolicyError listing every error; ConfigError when the file cannot be read
 */
export async function openPolicy(input: YamlInput, log: Logger): Promise<PolicyFile> {
  const file = new WatchedFile(input);
  return new PolicyFile(file, await file.read(), log);
}

/** The policy in effect, reloaded when its file changes. */
export class PolicyFile {
  readonly #file: WatchedFile;
  readonly #log: Logger;
  #current: Policy;
  /** The document in effect while it is not yet checked against the gateway's schemas. */
  #unchecked: DocumentText | undefined;

  constructor(file: WatchedFile, first: DocumentText, log: Logger) {
    this.#file = file;
    this.#log = log;
    this.#current = loadPolicy(first.text, { file: first.file });
    this.#unchecked = first;
  }

  /** The last valid version. A reload replaces it as a whole. */
  get current(): Policy {
    return this.#current;
  }

  /**
   * Reloads the file if it changed. A file with an error is rejected and logged with file, line and column; the
   * policy in effect stays (SV-3).
   */
  async look(tools: Tools): Promise<void> {
    const changed = await this.#changed();
    if (changed === undefined && this.#unchecked === undefined) return;
    const toolSchemas = await schemasOf(tools);
    if (changed !== undefined) this.#replace(changed, toolSchemas);
    else if (this.#unchecked !== undefined && toolSchemas !== undefined) {
      this.#load(this.#unchecked, toolSchemas);
      this.#unchecked = undefined;
    }
  }

  #replace(document: DocumentText, toolSchemas: ToolSchemas | undefined): void {
    const policy = this.#load(document, toolSchemas);
    if (policy === undefined) {
      const fields = { file: document.file, policy_version: this.#current.version };
      this.#log.error(fields, 'policy file is invalid; keeping the previous policy');
      return;
    }
    const versions = {
      file: document.file,
      policy_version: policy.version,
      previous_version: this.#current.version,
    };
    this.#current = policy;
    this.#unchecked = toolSchemas === undefined ? document : undefined;
    this.#log.info(versions, 'policy reloaded');
  }

  #load({ text, file }: DocumentText, toolSchemas: ToolSchemas | undefined): Policy | undefined {
    try {
      const policy = loadPolicy(text, { file, toolSchemas });
      for (const warning of policy.warnings) this.#log.warn(formatProblem(warning));
      return policy;
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      for (const problem of error.problems) this.#log.error(formatProblem(problem));
      return undefined;
    }
  }

  async #changed(): Promise<DocumentText | undefined> {
    try {
      return await this.#file.changed();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#log.error({ err: error }, 'policy file is unreadable; keeping the previous policy');
      return undefined;
    }
  }
}

async function schemasOf(tools: Tools): Promise<ToolSchemas | undefined> {
  try {
    return await tools.toolSchemas();
  } catch (error) {
    if (error instanceof UnavailableError) return undefined;
    throw error;
  }
}
