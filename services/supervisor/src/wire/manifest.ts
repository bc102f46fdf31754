import type { MessageInitShape } from '@bufbuild/protobuf';
import { AgentManifestSchema } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { messageOf } from '@writ/rpc';
import type { AgentManifest } from '../domain/manifest/agent-manifest.ts';

/** Converts a manifest. */
export function manifestMessage(
  manifest: AgentManifest,
): MessageInitShape<typeof AgentManifestSchema> {
  const { model, ...rest } = manifest;
  return messageOf(AgentManifestSchema, model.model === '' ? rest : manifest);
}
