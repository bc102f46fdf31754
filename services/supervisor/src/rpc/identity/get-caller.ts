import type { CallerService } from '@writ/contracts/writ/identity/v1/caller_service_pb';
import { permittedRpcs } from '@writ/identity';
import { type Handler, requirePerson } from '@writ/rpc';

/** GetCaller: returns the person that the credential identifies, and the RPCs that the person's roles permit (PE-1). */
export function getCaller(): Handler<typeof CallerService.method.getCaller> {
  return async (_request, call) => {
    const { subject, tenant, roles } = requirePerson(call);
    return { subject, tenant, roles: [...roles], methods: permittedRpcs(roles) };
  };
}
