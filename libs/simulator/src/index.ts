export type { ChatRequest } from './chat-request.ts';
export { loadScript, loadScripts } from './load-scripts.ts';
export type { ModelSimulator, ModelSimulatorOptions } from './model-simulator.ts';
export { createModelSimulator } from './model-simulator.ts';
export type { LoggedRequest, RequestRecord } from './request-log.ts';
export { readRequestLog } from './request-log.ts';
export type {
  Json,
  Reply,
  Script,
  ScriptEntry,
  ScriptExpectation,
  ScriptedPerson,
  ScriptedToolCall,
  ScriptedUsage,
  When,
} from './script.ts';
