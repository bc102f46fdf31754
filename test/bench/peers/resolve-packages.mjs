// Loaded before a peer program: finds its packages in the folder PEER_PACKAGES, outside the dependencies of the project.
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const PACKAGES = pathToFileURL(join(process.env.PEER_PACKAGES, 'package.json')).href;
const PROGRAMS = new URL('programs/', import.meta.url).href;

registerHooks({
  resolve(specifier, context, next) {
    const isPackage = !/^(\.|\/|node:|file:)/.test(specifier);
    const isOfPeer = context.parentURL?.startsWith(PROGRAMS) === true;
    return next(specifier, isPackage && isOfPeer ? { ...context, parentURL: PACKAGES } : context);
  },
});
