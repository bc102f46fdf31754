import { parseDuration } from '@writ/config';
import { newId, sha256Hex } from '@writ/kernel';
import type { Issuer } from './issuer.ts';
import type { CallerName, CallFields, CertificateName, WritFault } from './table.ts';
import type { TestPeers } from './test-peers.ts';

/** A call on the wire, and the expected contents of its receipt. */
export interface SentCall {
  readonly request: {
    readonly call: {
      readonly tenant: string;
      readonly run_id: string;
      readonly agent_instance: string;
      readonly call_id: string;
    };
    readonly tool: string;
    readonly arguments_json: string;
    readonly writ: string;
    readonly step: number;
  };
  readonly writId: string;
  readonly agentName: string;
  /** Whether the gateway must have deleted the result of the call. */
  readonly isResultDeleted: boolean;
  readonly headers: Readonly<Record<string, string>>;
  /** Client certificate of the TLS handshake, if any. */
  readonly certificate: CertificateName;
}

/** Names of one case; cases share no tenant, run or freeze. */
export interface CaseNames {
  /** Suffix of every name of the case. */
  readonly id: string;
  /** Definition digests by tool name. */
  readonly digests: ReadonlyMap<string, string>;
}

/** Name of the calling agent. */
const AGENT_NAME = 'payer';

/** The call of a step, with defaults for omitted fields. */
export function toSentCall(peers: TestPeers, names: CaseNames, fields: CallFields): SentCall {
  const {
    tool = 'pay',
    args = { to: 'anna' },
    arguments_json = JSON.stringify(args),
    call_id = 'op-1',
    agent = `${AGENT_NAME}-1`,
    step = 3,
  } = fields;
  const call = { ...runOf(names, fields), agent_instance: agent, call_id };
  const writId = newId('writ');
  const claims = {
    tenant: call.tenant,
    run_id: call.run_id,
    agent: { name: AGENT_NAME, instance: agent },
    call_id,
    tool,
    definition_digest: names.digests.get(tool) ?? 'none',
    args_sha256: sha256Hex(arguments_json),
    decision_id: 'decision_1',
    policy_version: 'policy_1',
    executed_from: 'original',
    allowed_tools: [tool],
    session_id: 'session_1',
    ...fields.writ,
  };
  const writ = toToken(peers, { fields, claims, writId });
  const by = fields.by ?? 'worker';
  return {
    request: { call, tool, arguments_json, writ, step },
    writId,
    agentName: AGENT_NAME,
    isResultDeleted: fields.result_deleted ?? false,
    headers: {
      ...callerHeaders(peers, by, 'tool-gateway', servedTenants(names, fields)),
      ...(fields.epoch === 'none' ? {} : { 'writ-epoch': String(fields.epoch ?? 1) }),
    },
    certificate: fields.certificate ?? certificateOf(by),
  };
}

/** Tenant and run with the suffix of the case. */
export function runOf(
  { id }: CaseNames,
  { tenant = 'acme', run = 'run' }: Pick<CallFields, 'tenant' | 'run'>,
): { readonly tenant: string; readonly run_id: string } {
  return { tenant: `${tenant}-${id}`, run_id: `${run}-${id}` };
}

/** Authentication headers of a caller. */
export function callerHeaders(
  { worker, supervisor }: TestPeers,
  by: CallerName,
  audience: string,
  serves: readonly string[] = [],
): Readonly<Record<string, string>> {
  const bearer = (issuer: Issuer) => ({
    authorization: `Bearer ${issuer.serviceToken(audience, serves)}`,
  });
  if (by === 'worker') return bearer(worker);
  return by === 'supervisor' ? bearer(supervisor) : {};
}

/**
 * The client certificate of a caller. An anonymous caller presents the certificate of agent-worker, so that the TLS
 * handshake succeeds.
 */
export function certificateOf(by: CallerName): CertificateName {
  return by === 'supervisor' ? 'supervisor' : 'agent-worker';
}

function servedTenants({ id }: CaseNames, { serves = [] }: CallFields): readonly string[] {
  return serves.map((tenant) => `${tenant}-${id}`);
}

interface TokenParts {
  readonly fields: CallFields;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly writId: string;
}

function toToken(
  { supervisor, impostor }: TestPeers,
  { fields, claims, writId }: TokenParts,
): string {
  const fault: WritFault = fields.token ?? {};
  if (fault.text !== undefined) return fault.text;
  const issuer = fault.key === 'unknown' ? impostor : supervisor;
  const token = issuer.token({
    kind: fault.kind ?? 'writ',
    audience: fault.audience ?? 'tool-gateway',
    subject: String(claims.call_id),
    claims,
    ttlMs: parseTtl(fields.ttl ?? '60s'),
    id: writId,
    ...(fault.payload && { payload: fault.payload }),
    ...(fault.header && { header: fault.header }),
    ...(fault.key === 'forged' && { signedBy: impostor }),
  });
  return fault.changed === undefined ? token : changed(token, fault.changed);
}

function parseTtl(text: string): number {
  return text.startsWith('-') ? -parseDuration(text.slice(1), 'ttl') : parseDuration(text, 'ttl');
}

/** The same token with other claims and the old signature. */
function changed(token: string, claims: Readonly<Record<string, unknown>>): string {
  const [header, payload = '', signature] = token.split('.');
  const original = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { writ: object };
  const forged = { ...original, writ: { ...original.writ, ...claims } };
  return [header, Buffer.from(JSON.stringify(forged)).toString('base64url'), signature].join('.');
}
