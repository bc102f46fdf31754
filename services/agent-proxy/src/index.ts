export { AGENT_PROXY_DEFAULTS, type AgentProxyConfig, readAgentProxyConfig } from './config.ts';
export { type AgentProxy, createAgentProxy } from './service.ts';
