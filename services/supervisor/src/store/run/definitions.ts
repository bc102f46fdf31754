import type { RunKey } from '@writ/kernel';
import type { AgentManifest } from '../../domain/manifest/agent-manifest.ts';
import { manifestFromJson, manifestToJson } from '../../domain/manifest/manifest-json.ts';
import type { SupervisorReader, SupervisorTransaction } from '../supervisor-store.ts';

/** Records the agents that a run may delegate to, as defined when the run starts (AG-1). */
export async function insertDefinitions(
  trx: SupervisorTransaction,
  { tenant, runId }: RunKey,
  manifests: readonly AgentManifest[],
): Promise<void> {
  if (manifests.length === 0) return;
  const rows = manifests.map((manifest) => ({
    tenant,
    run_id: runId,
    name: manifest.name,
    manifest: manifestToJson(manifest),
  }));
  await trx.insertInto('definitions').values(rows).execute();
}

/** An agent that a run may delegate to, as defined when the run started. */
export async function findDefinition(
  db: SupervisorReader,
  { tenant, runId }: RunKey,
  name: string,
): Promise<AgentManifest | undefined> {
  const row = await db
    .selectFrom('definitions')
    .select('manifest')
    .where('tenant', '=', tenant)
    .where('run_id', '=', runId)
    .where('name', '=', name)
    .executeTakeFirst();
  return row && manifestFromJson(row.manifest);
}
