import { ToolFailure } from '@writ/kernel';
import type { BuiltinTool } from './builtin-tool.ts';

const MAX_TEXT_BYTES = 16_384;

/** Reads and writes the notes of a run, which all its agents share. */
export const note: BuiltinTool = {
  description:
    'Keeps short texts for the rest of the run, for all of its agents. Write one under a name, read ' +
    'it by that name, or list the names. Writing again replaces a text.',
  inputSchema: {
    type: 'object',
    properties: {
      action: { enum: ['write', 'read', 'list'] },
      name: { type: 'string', pattern: '^[a-z0-9_-]{1,64}$', description: 'To write or to read.' },
      text: { type: 'string', description: 'To write; at most 16 KiB.' },
    },
    required: ['action'],
  },
  sideEffect: 'idempotent',
  risk: 0.1,
  timeoutMs: 5_000,
  maxCallsPerAgent: 50,
  maxRepeats: 10,
  create:
    ({ notes }) =>
    async ({ action, name, text }, run) => {
      if (action === 'list') {
        const list = await notes.list(run);
        return { notes: list.map(({ name, sizeBytes }) => ({ name, size_bytes: sizeBytes })) };
      }
      if (typeof name !== 'string') throw new ToolFailure(`name is required to ${action}.`);
      if (action === 'read') {
        const found = await notes.read(run, name);
        if (found === undefined) throw new ToolFailure(`Note ${name} does not exist.`);
        return { name, text: found };
      }
      if (typeof text !== 'string') throw new ToolFailure('text is required to write.');
      const size = Buffer.byteLength(text);
      if (size > MAX_TEXT_BYTES) {
        throw new ToolFailure(`text holds at most ${MAX_TEXT_BYTES} bytes; this is ${size}.`);
      }
      await notes.write(run, name, text);
      return { name, size_bytes: size };
    },
};
