export {
  type AgentInCode,
  type AgentManifest,
  type AgentSettings,
  createAgent,
} from '@writ/supervisor';
export { type CheckOptions, checkFiles, type SettingsFiles } from './check/check-files.ts';
export type { Finding } from './check/findings.ts';
export { type PlatformConfig, type PlatformOptions, readPlatformConfig } from './config.ts';
export { type Example, loadExample, scriptOf } from './example.ts';
export { hasConsole } from './has-console.ts';
export { type ModelSource, openModelSource } from './model-source.ts';
export { type Platform, startPlatform } from './platform.ts';
export { checkProject } from './project/check-project.ts';
export { documentsOf, loadProject, type Project } from './project/load-project.ts';
export { type OpenProject, openProject, type ProjectOptions } from './project/open-project.ts';
export { openSession, type Session, type SessionOptions } from './session.ts';
