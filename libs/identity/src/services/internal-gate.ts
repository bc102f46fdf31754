import {
  isClockError,
  type PeerClocks,
  PermissionDeniedError,
  UnauthenticatedError,
} from '@writ/kernel';
import { type Caller, type Gate, type GateCall, METADATA, type ServiceIdentity } from '@writ/rpc';
import { readAgentToken } from '../tokens/agent-token.ts';
import { bearer, readEpoch, requireHeader } from '../tokens/credentials.ts';
import { parseToken } from '../tokens/parse-token.ts';
import { readSlotGrant, requireSlotGrant, setGrantRequirement } from '../tokens/slot-grant.ts';
import type { Verifier } from '../tokens/verifier.ts';
import { callerRow, rpcKey, type ServicesRow } from './caller-table.ts';
import {
  AGENT_HOSTS,
  isServiceName,
  SERVICE_NAMES,
  type ServerName,
  type ServiceName,
} from './names.ts';
import { readSpiffeId } from './spiffe.ts';

/** Options of {@link internalGate}. */
export interface InternalGateOptions {
  /** The serving service: the audience that tokens must name. */
  readonly service: ServerName;
  readonly verifier: Verifier;
  /**
   * Whether calls without a current slot grant are rejected when the row of the RPC requires a slot grant (SB-4). A
   * grant that is presented with a required agent token is always verified.
   */
  readonly enforceSlotGrants: boolean;
  /** The required trust domain of client certificates; undefined when the port requires none. */
  readonly trustDomain?: string | undefined;
  /** Records the clock of each calling service. */
  readonly peerClocks?: PeerClocks | undefined;
}

/**
 * Creates the gate of an internal port, which enforces the caller table (SYS-6, SYS-4). It rejects RPCs without a row
 * and RPCs for people, and admits every caller of an open RPC. For other RPCs it checks in this order: the client
 * certificate, if required; the service token, which must name the service of the certificate; whether the row permits
 * the service; and, for an agent host, the lease epoch, the agent token, its tenant, and the slot grant.
 */
export function internalGate(options: InternalGateOptions): Gate {
  return async (call) => {
    const row = callerRow(call.method);
    if (row === undefined) throw notAllowed(call, 'No caller');
    if ('open' in row) return { isAnonymous: true };
    if ('people' in row) throw notAllowed(call, 'A service');
    const certified = readCertificate(options, call, row);
    const service = await readServiceToken(options, call);
    if (certified !== undefined && certified !== service.name)
      throw notAllowed(call, `The certificate of ${certified} with a token of ${service.name}`);
    if (!row.services.some((name) => name === service.name)) throw notAllowed(call, service.name);
    if (!AGENT_HOSTS.some((name) => name === service.name)) return { service };
    return workerCaller(options, call, row, service);
  };
}

async function workerCaller(
  { service: audience, verifier, enforceSlotGrants }: InternalGateOptions,
  call: GateCall,
  row: ServicesRow,
  service: ServiceIdentity,
): Promise<Caller> {
  const epoch = readEpoch(call, row.epoch === 'required');
  const identity = { service, ...(epoch === undefined ? {} : { epoch }) };
  // Tokens that the row does not require are ignored, so that no handler can rely on them.
  if (row.agentToken === undefined || !isServiceName(audience)) return identity;
  const token = requireHeader(call, METADATA.agentToken, 'an agent token');
  const agent = await readAgentToken(verifier, token, {
    audience,
    caller: { service },
    allowAnyTime: row.agentTokenOfAnyTime === true,
  });
  const header = call.header(METADATA.slotGrant);
  const presented = header ? await readSlotGrant(verifier, header, agent, epoch) : undefined;
  // An expired grant is treated as absent, because a paused agent may still send it with its partial final answer.
  const current = presented?.expired === false ? presented.grant : undefined;
  const caller: Caller = {
    ...identity,
    agent,
    ...(current === undefined ? {} : { slotGrant: current }),
  };
  setGrantRequirement(caller, {
    enforced: enforceSlotGrants,
    expired: presented?.expired === true,
  });
  if (row.slotGrant === 'required') requireSlotGrant(caller);
  return caller;
}

/** Returns the service named by the client certificate; undefined when no certificate is required. */
function readCertificate(
  { trustDomain }: InternalGateOptions,
  call: GateCall,
  { services }: ServicesRow,
): string | undefined {
  if (trustDomain === undefined) return undefined;
  if (call.peerUris === undefined)
    throw new UnauthenticatedError(
      'CERTIFICATE_MISSING',
      `${rpcKey(call.method)} requires a connection with the client certificate of a service.`,
      { rpc: rpcKey(call.method) },
    );
  const named = readSpiffeId(call.peerUris);
  if (named === undefined || named.trustDomain !== trustDomain)
    throw notAllowed(
      call,
      'A client with a certificate that names no service of this trust domain',
    );
  if (!services.some((name) => name === named.service))
    throw notAllowed(call, `The certificate of ${named.service}`);
  return named.service;
}

async function readServiceToken(
  { service: audience, verifier, peerClocks }: InternalGateOptions,
  call: GateCall,
): Promise<ServiceIdentity> {
  const token = bearer(call, 'a service token');
  const { claims, issuer, exceptTenants } = await verifier
    .verify('service', token, { issuer: SERVICE_NAMES, audience })
    .catch((error: unknown) => {
      // The signature is verified before the times.
      if (isClockError(error)) observeClock(peerClocks, parseToken('service', token).issuer, call);
      throw error;
    });
  observeClock(peerClocks, issuer, call);
  // A service signs tokens in its own name only.
  if (claims.name !== issuer)
    throw notAllowed(call, `${issuer} with a token that names another service`);
  const { name, replica, tenants } = claims;
  return { name, replica, tenants, ...(exceptTenants.length > 0 && { exceptTenants }) };
}

function observeClock(
  peerClocks: PeerClocks | undefined,
  caller: ServiceName,
  call: GateCall,
): void {
  const text = call.header(METADATA.time);
  if (text !== undefined && /^\d{1,15}$/.test(text)) peerClocks?.observe(caller, Number(text));
}

function notAllowed(call: GateCall, who: string): PermissionDeniedError {
  const rpc = rpcKey(call.method);
  return new PermissionDeniedError('CALLER_NOT_ALLOWED', `${who} may not call ${rpc}.`, { rpc });
}
