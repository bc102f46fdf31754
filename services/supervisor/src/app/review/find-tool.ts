import { UnavailableError } from '@writ/kernel';
import { namedTool, type Proposal } from '../../domain/review/proposal.ts';
import type { ReviewedTool } from '../../domain/review/reviewed-tool.ts';
import type { ToolGatewayPeer } from '../../peers/tool-gateway.ts';

/**
 * Gives the definition of the tool that a proposal names, undefined when there is none.
 * @throws UnavailableError TOOL_LIST_UNAVAILABLE when the gateway never said (SYS-4)
 */
export type FoundTool = () => ReviewedTool | undefined;

/** Looks the proposed tool up; that it cannot be had only matters once the tool is reviewed. */
export async function findProposedTool(
  gateway: ToolGatewayPeer,
  proposal: Proposal,
): Promise<FoundTool> {
  const name = namedTool(proposal);
  if (name === undefined) return () => undefined;
  try {
    const tool = await gateway.tool(name);
    return () => tool;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    return () => {
      throw error;
    };
  }
}
