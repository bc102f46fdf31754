/** Names of roles and files, for programs that start without the checks of keys and tokens, such as `writ`. */
export { DEV_API_KEY_FILE } from './people/key-files.ts';
export { ROLES } from './people/roles.ts';
