import { type Addresses, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { isWritError } from '@writ/kernel';

/** Returns the addresses of those `services` whose address is already known, for fetching their keys. */
export function knownAddresses(
  addressOf: (service: ServiceName) => string,
  services: readonly ServiceName[] = SERVICE_NAMES,
): Addresses {
  const known = services.flatMap((service): [ServiceName, string][] => {
    try {
      return [[service, addressOf(service)]];
    } catch (error) {
      if (isWritError(error)) return [];
      throw error;
    }
  });
  return Object.fromEntries(known);
}
