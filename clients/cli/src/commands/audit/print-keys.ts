import { timestampDate } from '@bufbuild/protobuf/wkt';
import { KeyService } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { formatPublicKeys, openServiceTls } from '@writ/identity';
import { createRpcClient } from '@writ/rpc';
import { readPeerSettings } from '@writ/service';
import { createTelemetry } from '@writ/telemetry';
import { explain } from '../../explain.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';

/** Options of `writ audit keys`. */
export interface KeysOptions {
  readonly supervisor?: string;
}

const SUPERVISOR =
  'Is the supervisor running there? Set --supervisor or WRIT_SUPERVISOR_ADDRESS to its internal address.';

/**
 * Prints the supervisor's public keys as a JSON Web Key Set. Verifiers keep the keys outside the platform, because keys
 * delivered with an export prove nothing (SV-8). With mutual TLS, the command authenticates with the supervisor's
 * certificate from the settings. Prints an error of the supervisor instead of throwing it.
 * @throws ConfigError for incomplete TLS settings; PreconditionError INVALID_TLS_FILE, TLS_NAME_MISMATCH
 */
export async function printKeys({ supervisor }: KeysOptions, io: CliIo): Promise<Exit> {
  const address = supervisor ?? io.env.WRIT_SUPERVISOR_ADDRESS ?? '127.0.0.1:50051';
  const telemetry = createTelemetry({ service: 'writ', logLevel: 'silent' });
  const files = readPeerSettings(io.env).tls;
  // With mutual TLS, only service certificates may call KeyService.
  const tls = files && openServiceTls({ service: 'supervisor', ...files, log: telemetry.log });
  const client = createRpcClient(KeyService, {
    address,
    telemetry,
    tls: tls?.to('supervisor'),
    health: 'unchecked',
  });
  try {
    const { keys } = await client.getKeys({});
    const known = keys.map(({ keyId, jwkJson, notBefore, notAfter }) => {
      const { x } = JSON.parse(jwkJson) as { readonly x: string };
      return {
        keyId,
        jwk: { kty: 'OKP', crv: 'Ed25519', x } as const,
        notBefore: notBefore === undefined ? new Date(0) : timestampDate(notBefore),
        ...(notAfter && { notAfter: timestampDate(notAfter) }),
      };
    });
    io.print(formatPublicKeys(known).trimEnd());
    return EXIT.success;
  } catch (error) {
    io.warn(explain(error, SUPERVISOR));
    return EXIT.error;
  } finally {
    client.close();
    tls?.close();
  }
}
