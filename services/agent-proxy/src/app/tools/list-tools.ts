import type { ToolDefinition } from '@writ/contracts/writ/tool/v1/tool_pb';
import { type AgentKey, agentKeyText, ByteCache, type Clock, OverloadedError } from '@writ/kernel';
import type { ToolPeers } from '../../peers/tool-peers.ts';
import { actWithoutSlot } from '../agent/act-for-agent.ts';
import type { AgentTokens } from '../agent/agent-tokens.ts';

/** How long a list is used before the version of the registry is confirmed, ms. */
const CONFIRM_MS = 1_000;
/** Maximum memory of the cached lists, bytes. */
const MAX_LIST_BYTES = 16_000_000;
/** Maximum number of tools of one agent. */
const MAX_TOOLS = 1_024;

/** The dependencies of reading a tool list. */
interface ToolListsParts {
  readonly tokens: Pick<AgentTokens, 'of'>;
  readonly peers: Pick<ToolPeers, 'listTools'>;
}

interface CachedList {
  readonly version: string;
  readonly tools: readonly ToolDefinition[];
  readonly confirmedAt: number;
}

/** A cache of one tool list per agent, with the version of the registry from which it was read. */
export class ToolLists {
  readonly #clock: Clock;
  readonly #lists = new ByteCache<CachedList>({ name: 'tool_lists', maxBytes: MAX_LIST_BYTES });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns the tools that both the manifest of the agent and the gateway permit, sorted by name (AP-3).
   * @throws OverloadedError TOO_MANY_TOOLS; the errors of `tokens.of` and `peers.listTools`
   */
  async of(parts: ToolListsParts, agent: AgentKey): Promise<readonly ToolDefinition[]> {
    const key = agentKeyText(agent);
    const known = this.#lists.get(key);
    const now = this.#clock.monotonicMs();
    if (known !== undefined && now - known.confirmedAt < CONFIRM_MS) return known.tools;
    const fresh = await actWithoutSlot(parts, agent, 'toolGateway', (options) =>
      readAll((query) => parts.peers.listTools(query, options), known?.version ?? ''),
    );
    const list = { ...(fresh ?? known ?? { version: '', tools: [] }), confirmedAt: now };
    this.#lists.set(key, list);
    return list.tools;
  }

  /** Forgets an agent that has ended. */
  forget(agent: AgentKey): void {
    this.#lists.delete(agentKeyText(agent));
  }
}

/** Reads every page; undefined when the known version is current. */
async function readAll(
  page: (query: {
    readonly nextPageToken: string;
    readonly knownVersion: string;
  }) => ReturnType<ToolPeers['listTools']>,
  knownVersion: string,
): Promise<Omit<CachedList, 'confirmedAt'> | undefined> {
  const tools: ToolDefinition[] = [];
  for (let nextPageToken = ''; ; ) {
    const answer = await page({ nextPageToken, knownVersion });
    if (answer.unchanged) return undefined;
    tools.push(...answer.tools);
    if (tools.length > MAX_TOOLS) {
      throw new OverloadedError(
        'TOO_MANY_TOOLS',
        `The manifest of the agent allows more than the maximum of ${MAX_TOOLS} tools; name fewer tools in it.`,
        { field: 'tools', limit: String(MAX_TOOLS) },
      );
    }
    ({ nextPageToken } = answer);
    if (nextPageToken === '') {
      // The order must be stable: the tools are part of the prompt, and cached prompts are reused only if their bytes
      // are unchanged.
      tools.sort((a, b) => (a.name < b.name ? -1 : 1));
      return { version: answer.registryVersion, tools };
    }
  }
}
