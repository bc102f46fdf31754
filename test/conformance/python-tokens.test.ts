import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { PYTHON_FOLDER } from '../../scripts/python.ts';
import { requirePython } from './python-gateway.ts';

const python = requirePython() ?? '';

/** Verifies a token whose header or payload is the given JSON, and prints the error. */
const VERIFY = `
import asyncio, sys
from gateway.errors import GatewayError
from gateway.tokens import KeyRing, encode, verify
from writ.identity.v1 import claims_pb2 as claims_pb

parts = {"header": b"{}", "payload": b"{}", sys.argv[1]: b"[" * int(sys.argv[2])}
token = ".".join(encode(parts[name]) for name in ("header", "payload")) + "."
try:
    asyncio.run(verify(KeyRing(str), "service", token, ("supervisor",), claims_pb.ServiceClaims()))
except GatewayError as error:
    print(error.code.name, error.reason, error.message)
except Exception as error:
    print(type(error).__name__, error)
`;

describe.skipIf(python === '')('the tokens of the gateway in Python', () => {
  it.each(['header', 'payload'])(
    'are rejected as malformed when the %s is nested more deeply than Python can parse (TG-1, SYS-4)',
    (part) => {
      const options = { cwd: PYTHON_FOLDER, encoding: 'utf8' } as const;
      expect(execFileSync(python, ['-c', VERIFY, part, '100000'], options).trim()).toBe(
        'UNAUTHENTICATED TOKEN_INVALID The service token is not valid: it is malformed.',
      );
    },
  );
});
