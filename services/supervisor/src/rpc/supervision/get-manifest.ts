import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { Handler } from '@writ/rpc';
import { readManifest } from '../../app/agent/read-manifest.ts';
import type { SupervisorContext } from '../../context.ts';
import { manifestMessage } from '../../wire/manifest.ts';

/**
 * GetManifest: returns the definition, as of the start of the run, of the calling agent or of an agent to which it may
 * delegate; any other name is rejected (AG-1, SUP-9).
 */
export function getManifest(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.getManifest> {
  return async ({ name }, call) => ({
    manifest: manifestMessage(await readManifest(context, call, name)),
  });
}
