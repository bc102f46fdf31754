export {
  type AgentInCode,
  type AgentManifest,
  type AgentSettings,
  createAgent,
} from '@writ/supervisor';
export { type PlatformConfig, type PlatformOptions, readPlatformConfig } from './config.ts';
export { type Example, loadExample, scriptOf } from './example.ts';
export { type ModelSource, openModelSource } from './model-source.ts';
export { type Platform, startPlatform } from './platform.ts';
export { openSession, type Session, type SessionOptions } from './session.ts';
