/** What a halt or a freeze applies to: everything, a tenant, a run or one agent (SV-9). */
export interface Scope {
  readonly tenant?: string;
  readonly runId?: string;
  readonly instance?: string;
}

/** What a scope can cover: a tenant (for work without a run), a run, or an agent. */
export interface ScopeSubject {
  readonly tenant: string;
  readonly runId?: string | undefined;
  readonly instance?: string | undefined;
}

/** Returns the text form of a scope, as a lookup key: `*`, a tenant, `tenant/run` or `tenant/run/agent`. */
export function scopeKey({ tenant, runId, instance }: Scope): string {
  return [tenant, runId, instance].filter((part) => part !== undefined).join('/') || '*';
}

/**
 * Returns the keys of the scopes that cover a subject, the widest first: everything, tenant, run, agent. If the subject
 * has no run or no agent, the key of the next wider scope is repeated in its place.
 */
export function scopesOver({
  tenant,
  runId,
  instance,
}: ScopeSubject): readonly [everything: string, tenant: string, run: string, agent: string] {
  const run = runId === undefined ? tenant : `${tenant}/${runId}`;
  return ['*', tenant, run, instance === undefined ? run : `${run}/${instance}`];
}

/** Whether a scope covers a subject. */
export function covers(scope: Scope, subject: ScopeSubject): boolean {
  return scopesOver(subject).includes(scopeKey(scope));
}
