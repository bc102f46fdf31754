import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { KeyService, type PublicKeySchema } from '@writ/contracts/writ/identity/v1/key_service_pb';
import { type Route, route } from '@writ/rpc';
import type { PublicKey, Signer } from './signer.ts';

/**
 * Returns the route of KeyService: every service serves its own public keys on its internal port. Retired keys are
 * listed with their `not_after`, because tokens that they signed may still be valid.
 */
export function keyRoute(signer: Signer): Route {
  return route(KeyService, {
    async getKeys({ keyId }) {
      // The requested key may have just been created by another replica.
      await signer.refresh();
      const keys = signer.publicKeys().filter((key) => keyId === '' || key.keyId === keyId);
      return { service: signer.service, keys: keys.map(toMessage) };
    },
  });
}

function toMessage(key: PublicKey): MessageInitShape<typeof PublicKeySchema> {
  return {
    keyId: key.keyId,
    jwkJson: JSON.stringify(key.jwk),
    notBefore: timestampFromDate(key.notBefore),
    ...(key.notAfter === undefined ? {} : { notAfter: timestampFromDate(key.notAfter) }),
  };
}
