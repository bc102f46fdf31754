export {
  readToolGatewayConfig,
  TOOL_GATEWAY_DEFAULTS,
  type ToolGatewayConfig,
} from './config.ts';
export { createToolGateway, type ToolGateway } from './service.ts';
export { TOOLS_SCHEMA } from './sources/tools-schema.ts';
