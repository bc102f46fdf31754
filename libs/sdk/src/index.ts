/**
 * Public API for agents, tools, middleware, context strategies and history providers written in TypeScript. Agents and
 * tools are configured in YAML; see docs/how-to/agents.md and docs/how-to/tools.md.
 *
 * @example
 * ```ts
 * import { ToolFailure, type Tools } from '@writ/sdk';
 *
 * export async function createTools(): Promise<Tools> {
 *   return {
 *     get_order: async ({ order_id }) => {
 *       if (order_id !== 7) throw new ToolFailure(`Order ${String(order_id)} does not exist.`);
 *       return { order_id: 7, total_usd: 120 };
 *     },
 *   };
 * }
 * ```
 */
export type {
  AgentCheckpoint,
  AgentDefinition,
  AgentMiddleware,
  AgentModule,
  AgentOperations,
  AgentTask,
  ChatMiddleware,
  ChatMiddlewareContext,
  ChatTurn,
  Clock,
  ContextStrategy,
  FollowOptions,
  FunctionMiddleware,
  FunctionMiddlewareContext,
  HandoffAnswer,
  HistoryKey,
  HistoryProvider,
  HistoryProviderDefinition,
  JsonArray,
  JsonObject,
  JsonValue,
  LlmOutcome,
  LlmRequest,
  Middleware,
  MiddlewareContext,
  MiddlewareDefinition,
  MiddlewareLevel,
  MiddlewareOperations,
  ModelAnswer,
  ModelAnswered,
  ModelCall,
  ModelQuestion,
  ModelReply,
  OptionsSchema,
  PriorityName,
  ReplyAnswer,
  RestoredAgent,
  SpawnAnswer,
  SpawnOptions,
  StrategyContext,
  StrategyDefinition,
  ToolAnswer,
  ToolCall,
  ToolContext,
  ToolFunction,
  ToolModule,
  ToolOffer,
  Tools,
  ToolUse,
  ToolUseResult,
} from '@writ/kernel';
export {
  defineAgent,
  defineHistoryProvider,
  defineMiddleware,
  defineStrategy,
  isJsonObject,
  MiddlewareTermination,
  ToolFailure,
} from '@writ/kernel';
