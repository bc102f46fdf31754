/**
 * Names of roles, services and files, exported separately so that programs such as `writ` do not load the code that
 * verifies keys and tokens.
 */
export { DEV_API_KEY_FILE } from './people/key-files.ts';
export { ROLES } from './people/roles.ts';
export { SERVICE_NAMES } from './services/names.ts';
