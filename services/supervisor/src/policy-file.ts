import { readFile } from 'node:fs/promises';
import { ConfigError, type YamlInput } from '@writ/config';
import { loadPolicy, type Policy } from '@writ/policy';

/**
 * Reads the rules that every action is held against. Arguments are not checked against the gateway's
 * schemas here, since the gateway may start later; reviews do that each time.
 * @throws PolicyError naming every mistake; ConfigError when the file cannot be read
 */
export async function loadPolicyFile(input: YamlInput): Promise<Policy> {
  const { text, file } = typeof input === 'string' ? await read(input) : input;
  return loadPolicy(text, { file });
}

async function read(file: string): Promise<{ readonly text: string; readonly file: string }> {
  try {
    return { text: await readFile(file, 'utf8'), file };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new ConfigError(file, [`${file} cannot be read (${code}).`], { cause: error });
  }
}
