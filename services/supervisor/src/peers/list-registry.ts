import { setImmediate } from 'node:timers/promises';
import type {
  ListToolsResponse,
  ToolGatewayService,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { SideEffect, type ToolDefinition } from '@writ/contracts/writ/tool/v1/tool_pb';
import {
  compileContract,
  InvalidRequestError,
  isJsonObject,
  isWritError,
  parseJsonStrict,
  UnavailableError,
} from '@writ/kernel';
import type { RpcClient } from '@writ/rpc';
import type { Logger } from '@writ/telemetry';
import { type ReviewedTool, toPolicyRisk } from '../domain/review/reviewed-tool.ts';
import type { RegistryAnswer } from './tool-cache.ts';

/** Short, because a review waits for the list. */
const TIMEOUT_MS = 2_000;
const PAGE_SIZE = 500;
/** Maximum number of attempts to read the list while the registry changes. */
const MAX_ATTEMPTS = 3;

/**
 * Lists all tools of one registry version; returns no listing when the version is still `knownVersion`. A tool with an
 * unusable definition is omitted and logged, so reviews treat it as an unknown tool (SYS-4).
 * @throws UnavailableError TOOL_LIST_UNSTABLE when the registry changed during every attempt; the errors of the call
 */
export async function listRegistry(
  client: Pick<RpcClient<typeof ToolGatewayService>, 'listTools'>,
  knownVersion: string,
  log: Logger,
): Promise<RegistryAnswer> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const pages = await listPages(client, knownVersion);
    if (pages === 'changed_meanwhile') continue;
    if (!Array.isArray(pages)) {
      return { listing: undefined, emitsHookEvents: pages.emitsHookEvents };
    }
    const [{ registryVersion: version, emitsHookEvents }] = pages;
    const tools: ReviewedTool[] = [];
    for (const definition of pages.flatMap((page) => page.tools)) {
      tools.push(...usable(definition, log));
      // A gateway may list many large schemas; other work continues between them (BD-1).
      await setImmediate();
    }
    const listing = { version, tools: new Map(tools.map((tool) => [tool.name, tool])) };
    return { listing, emitsHookEvents };
  }
  throw new UnavailableError(
    'TOOL_LIST_UNSTABLE',
    'The registry of the tool gateway changed during every attempt to list it.',
  );
}

type Pages = [ListToolsResponse, ...ListToolsResponse[]];

/**
 * Returns all pages, the single response when the registry is unchanged, or `changed_meanwhile` when the version
 * changed between pages.
 */
async function listPages(
  client: Pick<RpcClient<typeof ToolGatewayService>, 'listTools'>,
  knownVersion: string,
): Promise<Pages | ListToolsResponse | 'changed_meanwhile'> {
  let pages: Pages | undefined;
  let pageToken = '';
  do {
    const page = await client.listTools(
      { knownVersion: pageToken === '' ? knownVersion : '', pageSize: PAGE_SIZE, pageToken },
      // The call is not retried, because a review waits for it; the next review requests the list again.
      { timeoutMs: TIMEOUT_MS },
    );
    if (page.unchanged && knownVersion !== '' && pageToken === '') return page;
    pages = pages === undefined ? [page] : [...pages, page];
    if (pages[0].registryVersion !== page.registryVersion) return 'changed_meanwhile';
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return pages;
}

function usable(definition: ToolDefinition, log: Logger): ReviewedTool[] {
  const { name, inputSchemaJson, definitionDigest, risk, sideEffect } = definition;
  const { allowedAgents: agents, allowedTenants: tenants } = definition;
  try {
    const schema = parseJsonStrict(inputSchemaJson, { field: 'input_schema_json' });
    if (!isJsonObject(schema) || definitionDigest === '') {
      throw new InvalidRequestError(
        'INVALID_TOOL_DEFINITION',
        'A tool definition requires a schema and a digest.',
      );
    }
    const contract = compileContract(schema);
    const hasEffect = sideEffect !== SideEffect.READ_ONLY;
    return [
      { name, definitionDigest, contract, risk: toPolicyRisk(risk), hasEffect, agents, tenants },
    ];
  } catch (error) {
    if (!isWritError(error)) throw error;
    log.warn({ tool: name, reason: error.reason }, 'tool definition is unusable');
    return [];
  }
}
