import { readFile } from 'node:fs/promises';
import { ConfigError, type YamlInput } from '@writ/config';
import { loadPolicy, type Policy } from '@writ/policy';

/**
 * Reads the rules that every action is held against. Arguments are not checked against the gateway's
 * schemas here, since the gateway may start later: policy-check.ts does that once it answers.
 * @throws PolicyError naming every mistake; ConfigError when the file cannot be read
 */
export async function loadPolicyFile(input: YamlInput): Promise<Policy> {
  const { text, file } = await readPolicyText(input);
  return loadPolicy(text, { file });
}

/**
 * A policy document as text, with the name that messages call it.
 * @throws ConfigError when the file cannot be read
 */
export async function readPolicyText(
  input: YamlInput,
): Promise<{ readonly text: string; readonly file: string }> {
  return typeof input === 'string' ? await read(input) : input;
}

async function read(file: string): Promise<{ readonly text: string; readonly file: string }> {
  try {
    return { text: await readFile(file, 'utf8'), file };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new ConfigError(file, [`${file} cannot be read (${code}).`], { cause: error });
  }
}
