import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  ListToolsRequest,
  ListToolsResponseSchema,
} from '@writ/contracts/writ/run/v1/run_service_pb';
import type { SupervisorContext } from '../../context.ts';
import { gatewayAllows } from '../../domain/review/reviewed-tool.ts';

const DEFAULT_PAGE = 50;

/**
 * Returns one page of the gateway's registry with only the tools that `tenant` may use. Omits the allowlists of the
 * tools, because they contain other tenants (SYS-6).
 */
export async function listTools(
  { peers }: Pick<SupervisorContext, 'peers'>,
  tenant: string,
  { pageSize, pageToken }: Pick<ListToolsRequest, 'pageSize' | 'pageToken'>,
): Promise<MessageInitShape<typeof ListToolsResponseSchema>> {
  const page = { pageSize: pageSize || DEFAULT_PAGE, pageToken };
  const { tools, nextPageToken, registryVersion } = await peers.toolGateway.listTools(page);
  const usable = tools.filter(({ allowedTenants: tenants }) =>
    gatewayAllows({ tenants }, { tenant, agentName: '' }),
  );
  return {
    tools: usable.map(({ allowedTenants: _, ...tool }) => tool),
    nextPageToken,
    registryVersion,
  };
}
