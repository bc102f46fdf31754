import type { MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import {
  AgentClaimsSchema,
  CallStatus,
  CheckpointClaimsSchema,
  ReceiptClaimsSchema,
  RunTokenClaimsSchema,
  ServiceClaimsSchema,
  SlotGrantClaimsSchema,
  WritClaimsSchema,
} from '@writ/contracts/writ/identity/v1/claims_pb';
import type { AgentRef } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { EXECUTED_FROM, isId, TOOL_NAME_PATTERN } from '@writ/kernel/portable';
import { isServiceName, SERVICE_NAMES, type ServiceName } from '../services/names.ts';
import { weightOf } from './priority-weight.ts';

/** The protobuf message of each kind of token. */
export const CLAIM_SCHEMAS = {
  service: ServiceClaimsSchema,
  agent: AgentClaimsSchema,
  slot_grant: SlotGrantClaimsSchema,
  writ: WritClaimsSchema,
  receipt: ReceiptClaimsSchema,
  checkpoint: CheckpointClaimsSchema,
  run_token: RunTokenClaimsSchema,
} as const;

/** The kind of a token; also the name of its private claim. */
export type TokenKind = keyof typeof CLAIM_SCHEMAS;

/** The private claim of a kind of token. */
export type Claims<K extends TokenKind> = MessageShape<(typeof CLAIM_SCHEMAS)[K]>;

/** The initializer of {@link Claims}. */
export type ClaimsInit<K extends TokenKind> = MessageInitShape<(typeof CLAIM_SCHEMAS)[K]>;

/** The rules of one kind of token. */
export interface KindRules<K extends TokenKind> {
  /** The `typ` of the header, which tells the kinds apart. */
  readonly typ: string;
  /** The services that may issue tokens of this kind. */
  readonly issuers: readonly ServiceName[];
  /** Whether the token permits an action; its expiry is then checked without leeway. */
  readonly isStrict: boolean;
  /**
   * Maximum length of a token, in characters. Request fields for tokens of this kind have the same limit, if they have
   * one.
   */
  readonly maxLength: number;
  /** Whether verified tokens are cached. */
  readonly cached: boolean;
  /** Returns the required `sub` for the claims. */
  subject(claims: Claims<K>): string;
  /**
   * Returns the name of the first invalid field; undefined if all are valid. Called before signing and when reading a
   * token.
   */
  badField(claims: Claims<K>): string | undefined;
}

/** Default of the tolerated difference between the clocks of two services, ms. */
export const DEFAULT_CLOCK_LEEWAY_MS = 60_000;
const SHA256_PATTERN = /^[0-9a-f]{64}$/;
const RECEIPT_STATUSES: readonly number[] = Object.values(CallStatus).filter(
  (status) => status !== CallStatus.UNSPECIFIED,
);
const EXECUTED_FROM_VALUES: readonly string[] = EXECUTED_FROM;

/**
 * The rules of every kind. The expiry of writs and slot grants is checked without leeway (SYS-4, SB-4, TG-1): for a
 * writ by the clock of the verifying service, for a slot grant by the clock of its issuer, if it is known (BD-3).
 */
export const KIND_RULES: { readonly [K in TokenKind]: KindRules<K> } = {
  service: {
    typ: 'service+jwt',
    issuers: SERVICE_NAMES,
    isStrict: false,
    maxLength: 16_384,
    cached: true,
    subject: (claims) => claims.name,
    badField: (claims) =>
      firstBad({
        name: isServiceName(claims.name),
        replica: isId(claims.replica),
        tenants: claims.tenants.every(isId),
      }),
  },
  agent: {
    typ: 'agent+jwt',
    issuers: ['supervisor'],
    isStrict: false,
    maxLength: 8_192,
    cached: true,
    subject: (claims) => claims.agent?.instance ?? '',
    badField: (claims) =>
      firstBad({
        tenant: isId(claims.tenant),
        run_id: isId(claims.runId),
        session_id: isId(claims.sessionId),
        agent: isAgent(claims.agent),
        parent: claims.parent === undefined || isAgent(claims.parent),
        priority: weightOf(claims.priority) !== undefined,
      }),
  },
  slot_grant: {
    typ: 'slot-grant+jwt',
    issuers: ['spawn-budget'],
    isStrict: true,
    maxLength: 8_192,
    cached: true,
    subject: (claims) => claims.agentInstance,
    badField: (claims) =>
      firstBad({
        tenant: isId(claims.tenant),
        run_id: isId(claims.runId),
        agent_instance: isId(claims.agentInstance),
        priority: weightOf(claims.priority) !== undefined,
        epoch: claims.epoch >= 0n,
      }),
  },
  writ: {
    typ: 'writ+jwt',
    issuers: ['supervisor'],
    isStrict: true,
    maxLength: 16_384,
    cached: false,
    subject: (claims) => claims.callId,
    badField: (claims) =>
      firstBad({
        tenant: isId(claims.tenant),
        run_id: isId(claims.runId),
        agent: isAgent(claims.agent),
        call_id: isId(claims.callId),
        tool: TOOL_NAME_PATTERN.test(claims.tool),
        definition_digest: claims.definitionDigest !== '',
        args_sha256: SHA256_PATTERN.test(claims.argsSha256),
        decision_id: claims.decisionId !== '',
        executed_from: EXECUTED_FROM_VALUES.includes(claims.executedFrom),
      }),
  },
  receipt: {
    typ: 'receipt+jwt',
    issuers: ['tool-gateway'],
    isStrict: false,
    maxLength: 16_384,
    cached: false,
    subject: (claims) => claims.callId,
    badField: (claims) =>
      firstBad({
        tenant: isId(claims.tenant),
        run_id: isId(claims.runId),
        agent: isAgent(claims.agent),
        call_id: isId(claims.callId),
        tool: TOOL_NAME_PATTERN.test(claims.tool),
        status: RECEIPT_STATUSES.includes(claims.status),
        revision: claims.revision >= 1,
      }),
  },
  checkpoint: {
    typ: 'checkpoint+jwt',
    issuers: ['supervisor'],
    isStrict: false,
    maxLength: 8_192,
    cached: false,
    subject: (claims) => claims.tenant,
    badField: (claims) =>
      firstBad({
        tenant: isId(claims.tenant),
        count: claims.count >= 0n,
        head_hash: SHA256_PATTERN.test(claims.headHash),
        previous_count: claims.previousCount >= 0n && claims.previousCount <= claims.count,
        checkpoint_number: claims.checkpointNumber >= 0n,
      }),
  },
  run_token: {
    typ: 'run+jwt',
    issuers: ['supervisor'],
    isStrict: false,
    maxLength: 8_192,
    cached: true,
    subject: (claims) => claims.agent?.instance ?? '',
    badField: (claims) =>
      firstBad({
        tenant: isId(claims.tenant),
        run_id: isId(claims.runId),
        agent: isAgent(claims.agent),
      }),
  },
};

function firstBad(fields: Record<string, boolean>): string | undefined {
  return Object.entries(fields).find(([, good]) => !good)?.[0];
}

function isAgent(agent: AgentRef | undefined): boolean {
  return agent !== undefined && isId(agent.name) && isId(agent.instance);
}
