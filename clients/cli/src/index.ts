/** The API for programs that embed the platform; `writ --help` lists the commands. */
export {
  type AgentInCode,
  type AgentManifest,
  type AgentSettings,
  createAgent,
  loadProject,
  type OpenProject,
  openProject,
  type Platform,
  type PlatformConfig,
  type Project,
  type ProjectOptions,
  startPlatform,
} from '@writ/platform';
