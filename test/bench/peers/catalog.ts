/** A peer: a program that makes the same run with another library. */
export interface PeerEntry {
  /**
   * Identifies the peer in the report, in the URL under which the model counts the requests of each peer, and in the
   * names of folders and databases.
   */
  readonly id: string;
  readonly name: string;
  /** File of the program, relative to this folder. */
  readonly program: string;
  /** Package whose version is shown; undefined for Writ and for agent-proxy. */
  readonly package?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly needsPostgres?: true;
  /** The limits on a run that the program sets with the library. */
  readonly enforces: string;
  /** What survives a crash. */
  readonly durable: string;
}

const LANGGRAPH = {
  program: 'programs/langgraph.mjs',
  package: '@langchain/langgraph',
  enforces: 'a maximum number of steps',
} as const;

const CHECKPOINTS = 'a checkpoint of each step, written while the next step runs';
const UNSYNCED_CHECKPOINTS = `${CHECKPOINTS}; commits are not synced to disk`;

/** All peers with their default settings, Writ last. */
export const PEERS: readonly PeerEntry[] = [
  {
    id: 'direct',
    name: 'OpenAI SDK',
    program: 'programs/direct.mjs',
    package: 'openai',
    enforces: 'nothing',
    durable: 'nothing',
  },
  {
    id: 'portkey',
    name: 'OpenAI SDK through the Portkey gateway',
    program: 'programs/direct.mjs',
    package: '@portkey-ai/gateway',
    env: { PEER_GATEWAY: 'portkey' },
    enforces: 'nothing; the gateway sees the model calls only',
    durable: 'nothing',
  },
  {
    id: 'agent-proxy',
    name: 'OpenAI SDK through agent-proxy, embedded on SQLite',
    program: 'programs/direct.mjs',
    env: { PEER_GATEWAY: 'agent-proxy' },
    enforces: 'budgets of tokens and cost; agent-proxy sees the model calls only',
    durable: 'reservation and cost of each model call, before the next action',
  },
  {
    id: 'openai-agents',
    name: 'OpenAI Agents JS',
    program: 'programs/openai-agents.mjs',
    package: '@openai/agents',
    enforces: 'a maximum number of turns',
    durable: 'nothing',
  },
  {
    id: 'mastra',
    name: 'Mastra',
    program: 'programs/mastra.mjs',
    package: '@mastra/core',
    enforces: 'a maximum number of steps',
    durable: 'nothing',
  },
  {
    id: 'langgraph',
    name: 'LangGraph JS',
    ...LANGGRAPH,
    env: { PEER_STORE: 'none' },
    durable: 'nothing',
  },
  {
    id: 'langgraph-sqlite',
    name: 'LangGraph JS, SQLite',
    ...LANGGRAPH,
    env: { PEER_STORE: 'sqlite' },
    durable: UNSYNCED_CHECKPOINTS,
  },
  {
    id: 'langgraph-postgres',
    name: 'LangGraph JS, PostgreSQL',
    ...LANGGRAPH,
    env: { PEER_STORE: 'postgres' },
    needsPostgres: true,
    durable: CHECKPOINTS,
  },
  {
    id: 'dbos',
    name: 'DBOS, PostgreSQL',
    program: 'programs/dbos.mjs',
    package: '@dbos-inc/dbos-sdk',
    needsPostgres: true,
    enforces: 'one execution per workflow id',
    durable: 'the result of each step, before the next step',
  },
  {
    id: 'writ',
    name: 'Writ, embedded on SQLite',
    program: 'writ-program.ts',
    enforces:
      'budgets of tokens and cost, headcount, a policy decision for each action, one signed writ for each tool call',
    durable:
      'reservation and cost of each model call, decision, intent and outcome of each tool call, before the next action; audit chain',
  },
];
