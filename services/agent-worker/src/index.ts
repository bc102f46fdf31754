export { loadAgentModules } from './agents/load-modules.ts';
export { AGENT_WORKER_DEFAULTS, type AgentWorkerConfig, readAgentWorkerConfig } from './config.ts';
export type {
  Agent,
  AgentContext,
  AgentFactory,
  ModelAnswer,
  Proposal,
  ProposalOutcome,
} from './runtime/agent.ts';
export { type AgentWorker, type AgentWorkerParts, createAgentWorker } from './service.ts';
export { openWorkerStore, type WorkerStore } from './store/worker-store.ts';
