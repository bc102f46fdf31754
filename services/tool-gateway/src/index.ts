export {
  readToolGatewayConfig,
  TOOL_GATEWAY_DEFAULTS,
  type ToolGatewayConfig,
} from './config.ts';
export { createToolGateway, type ToolGateway } from './service.ts';
export { localSourceProblems } from './sources/local-source-problems.ts';
export { loadToolsFile, type ToolsFile } from './sources/tools-file.ts';
export { TOOLS_SCHEMA } from './sources/tools-schema.ts';
