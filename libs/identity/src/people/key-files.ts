/** Name of the file of API keys in a data folder. */
export const API_KEYS_FILE = 'api-keys.json';
/** Name of the file with the text of the development key in a data folder. */
export const DEV_API_KEY_FILE = 'dev-api-key';
