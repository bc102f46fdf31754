import type { AgentManifest } from '../../domain/agent/manifest.ts';

/** How many items an agent works on before it answers; without a limit it goes on until its run ends. */
export function mostItems({ options }: AgentManifest): number {
  const { max_items: most } = options;
  return typeof most === 'number' && Number.isInteger(most) && most >= 0
    ? most
    : Number.POSITIVE_INFINITY;
}
