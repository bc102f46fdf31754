import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type ClientCapabilities,
  type Implementation,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { ClientTerms } from '../../domain/waiting-policy.ts';

/** The extension for tasks. */
export const TASKS = 'io.modelcontextprotocol/tasks';

/** The generation of the MCP protocol that a request uses. */
export type Era = 'legacy' | 'modern';

/** Clients that fail when they are asked to repeat a request. */
const DOES_NOT_REPEAT = ['Anthropic/ClaudeAI'];

interface Envelope {
  readonly [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities;
  readonly [CLIENT_INFO_META_KEY]?: Implementation;
}

/** Returns the waiting capabilities of a client, as declared by its request. */
export function termsOf({ mcpReq }: ServerContext, era: Era): ClientTerms {
  const { _meta } = mcpReq;
  const envelope = (mcpReq.envelope ?? {}) as Envelope;
  const extensions = envelope[CLIENT_CAPABILITIES_META_KEY]?.extensions ?? {};
  const name = envelope[CLIENT_INFO_META_KEY]?.name ?? '';
  return {
    hasTasks: era === 'modern' && extensions[TASKS] !== undefined,
    repeatsItself: era === 'modern' && !DOES_NOT_REPEAT.includes(name),
    wantsProgress: _meta?.progressToken !== undefined,
  };
}
