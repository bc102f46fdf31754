import { type Addresses, SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { isWritError } from '@writ/kernel';

/** The addresses that are known by now, for asking services for their keys; the others are left out. */
export function knownAddresses(addressOf: (service: ServiceName) => string): Addresses {
  const known = SERVICE_NAMES.flatMap((service): [ServiceName, string][] => {
    try {
      return [[service, addressOf(service)]];
    } catch (error) {
      if (isWritError(error)) return [];
      throw error;
    }
  });
  return Object.fromEntries(known);
}
