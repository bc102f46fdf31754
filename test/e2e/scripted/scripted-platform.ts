import type { AgentManifest } from '@writ/platform';
import {
  type ChatRequest,
  createModelSimulator,
  type LoggedRequest,
  type Script,
} from '@writ/simulator';
import {
  startTestPlatform,
  type TestPlatform,
  type TestPlatformOptions,
} from '@writ/testing/platform';
import { APPROVE_ALL } from '../approve-all.ts';

/**
 * A platform whose agents, policy and model are those of a test; the tools are those of an example unless the test sets
 * a tools file.
 */
export interface ScriptedPlatform {
  readonly test: TestPlatform;
  /** Requests to the model, in order. */
  requests(): readonly LoggedRequest[];
  close(): Promise<void>;
}

/** Options of {@link startScriptedPlatform}. */
export interface ScriptedPlatformOptions {
  /** Agents file in YAML; the model alias is `research`. Omitted: only agents in code. */
  readonly agents?: string;
  /** Agents created by createAgent. */
  readonly agentsInCode?: readonly AgentManifest[];
  /** Policy file in YAML; default: approves everything. */
  readonly policy?: string;
  /** Tools file in YAML, with absolute paths of modules; default: that of the example. */
  readonly tools?: string;
  /** TypeScript module with custom agents. */
  readonly modules?: string;
  readonly entries: Script['entries'];
  /** Called before each answer of the model; the answer waits until the returned promise settles. */
  readonly beforeAnswer?: (chat: ChatRequest) => Promise<void>;
  readonly env?: Readonly<Record<string, string>>;
  readonly busOf?: TestPlatformOptions['busOf'];
}

/** Starts all five services with the given agents, policy and model. */
export async function startScriptedPlatform(
  options: ScriptedPlatformOptions,
): Promise<ScriptedPlatform> {
  const { agents, modules, tools, beforeAnswer, agentsInCode, busOf } = options;
  const model = await createModelSimulator({
    scripts: [{ name: 'scripted', entries: options.entries }],
    ...(beforeAnswer && { beforeAnswer }),
  });
  const test = await startTestPlatform({
    example: 'research-team',
    ...(agentsInCode && { agents: agentsInCode }),
    ...(busOf && { busOf }),
    files: {
      ...(agents !== undefined && { WRIT_AGENTS_FILE: agents }),
      ...(tools !== undefined && { WRIT_TOOLS_FILE: tools }),
      ...(modules !== undefined && { WRIT_AGENT_MODULES: modules }),
      WRIT_POLICY_FILE: options.policy ?? APPROVE_ALL,
    },
    env: {
      OPENAI_BASE_URL: model.url,
      OPENAI_API_KEY: 'scripted',
      WRIT_SIMULATOR_URL: model.url,
      WRIT_SIMULATOR_KEY: 'scripted',
      ...options.env,
    },
  });
  return {
    test,
    requests: () => model.requests(),
    close: async () => {
      await test.close();
      await model.close();
    },
  };
}
