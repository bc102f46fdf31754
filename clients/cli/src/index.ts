/** What a program imports that embeds the platform; `writ --help` lists the commands. */
export {
  type AgentInCode,
  type AgentManifest,
  type AgentSettings,
  createAgent,
  type Platform,
  type PlatformConfig,
  startPlatform,
} from '@writ/platform';
