import { fromJson, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { base64url } from 'jose';
import { isServiceName, type ServiceName } from '../services/names.ts';
import { tokenInvalid } from './token-error.ts';
import { CLAIM_SCHEMAS, type Claims, KIND_RULES, type TokenKind } from './token-kinds.ts';

/** The content of a token before its signature is verified: not trusted. */
export interface UnverifiedToken {
  readonly keyId: string;
  readonly issuer: ServiceName;
  readonly payload: JsonObject;
}

/** The registered claims, except `iss` and `sub`. */
export interface Registered {
  readonly audience: string;
  readonly id: string;
  readonly issuedAt: Date;
  readonly notBefore: Date | undefined;
  readonly expireTime: Date;
}

const HEADER_FIELDS = ['alg', 'kid', 'typ'];
const REGISTERED = ['iss', 'aud', 'sub', 'iat', 'nbf', 'exp', 'jti'];
const MAX_KEY_ID = 128;
const UTF_8 = new TextDecoder('utf-8', { fatal: true });
/** The maximum time of a Date, Unix seconds. */
const LAST_SECOND = 8_640_000_000_000;

/**
 * Parses a compact JWS and checks its header and issuer. The header must contain exactly `alg` (EdDSA), `kid`, and the
 * `typ` of the kind (TG-1).
 * @throws UnauthenticatedError TOKEN_INVALID (`metadata.check` names the failed check)
 */
export function parseToken(kind: TokenKind, token: string): UnverifiedToken {
  const { typ, maxLength } = KIND_RULES[kind];
  if (token.length > maxLength)
    throw tokenInvalid(kind, 'size', `it exceeds ${maxLength} characters`);
  const parts = token.split('.');
  const [header, payload, signature] = parts.map(decodePart);
  if (parts.length !== 3 || !header || !payload || !signature)
    throw tokenInvalid(kind, 'form', 'it is not a compact JWS');
  const fields = parseObject(kind, 'header', header);
  // Also rejects crit, b64 and jwk, which change how the signature is verified.
  if (Object.keys(fields).sort().join() !== HEADER_FIELDS.join())
    throw tokenInvalid(kind, 'header', 'its header must contain exactly alg, kid and typ');
  if (fields.alg !== 'EdDSA') throw tokenInvalid(kind, 'alg', 'its algorithm is not EdDSA');
  if (fields.typ !== typ) throw tokenInvalid(kind, 'typ', `its type is not ${typ}`);
  const { kid } = fields;
  if (typeof kid !== 'string' || kid === '' || kid.length > MAX_KEY_ID)
    throw tokenInvalid(kind, 'kid', 'its key id is malformed');
  const claims = parseObject(kind, 'payload', payload);
  if (!isServiceName(claims.iss)) throw tokenInvalid(kind, 'iss', 'its issuer is not a service');
  return { keyId: kid, issuer: claims.iss, payload: claims };
}

/** Reads the registered claims except `iss` and `sub`; all but `nbf` are required. */
export function readRegistered(kind: TokenKind, payload: JsonObject): Registered {
  const { aud, jti } = payload;
  if (typeof aud !== 'string' || aud === '')
    throw tokenInvalid(kind, 'aud', 'it must have exactly one audience');
  if (typeof jti !== 'string' || jti === '') throw tokenInvalid(kind, 'jti', 'it has no id');
  return {
    audience: aud,
    id: jti,
    issuedAt: time(kind, payload, 'iat'),
    notBefore: payload.nbf === undefined ? undefined : time(kind, payload, 'nbf'),
    expireTime: time(kind, payload, 'exp'),
  };
}

/**
 * Reads the private claim. An unknown field is rejected, not ignored, because it may restrict what is
 * allowed (SYS-4): upgrade readers before issuers.
 */
export function readClaims<K extends TokenKind>(kind: K, payload: JsonObject): Claims<K> {
  const unknown = Object.keys(payload).find((key) => key !== kind && !REGISTERED.includes(key));
  if (unknown !== undefined) throw tokenInvalid(kind, 'claims', 'it has an unknown claim');
  const claims = fromClaim(kind, payload[kind]);
  const rules = KIND_RULES[kind];
  const field = rules.badField(claims);
  if (field !== undefined)
    throw tokenInvalid(kind, 'claims', `its ${field} is missing or malformed`);
  if (payload.sub !== rules.subject(claims))
    throw tokenInvalid(kind, 'sub', 'its subject does not match its claims');
  return claims;
}

function fromClaim<K extends TokenKind>(kind: K, claim: JsonValue | undefined): Claims<K> {
  try {
    return fromJson(CLAIM_SCHEMAS[kind], claim ?? null);
  } catch {
    throw tokenInvalid(kind, 'claims', `its claim ${kind} is missing or malformed`);
  }
}

/** Returns undefined unless `part` is canonical base64url, so that every token has a single encoding. */
function decodePart(part: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(part)) return undefined;
  try {
    const bytes = base64url.decode(part);
    return base64url.encode(bytes) === part ? bytes : undefined;
  } catch {
    return undefined;
  }
}

function parseObject(kind: TokenKind, part: 'header' | 'payload', bytes: Uint8Array): JsonObject {
  try {
    const value: JsonValue = JSON.parse(UTF_8.decode(bytes));
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
  }
  throw tokenInvalid(kind, part, `its ${part} is not a JSON object`);
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function time(kind: TokenKind, payload: JsonObject, claim: 'iat' | 'nbf' | 'exp'): Date {
  const seconds = payload[claim];
  if (typeof seconds !== 'number' || Math.abs(seconds) > LAST_SECOND)
    throw tokenInvalid(kind, claim, `its ${claim} is missing or malformed`);
  return new Date(Math.round(seconds * 1000));
}
