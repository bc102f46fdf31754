import { type JsonObject, type ToolContext, ToolFailure, type Tools } from '@writ/kernel';
import { evaluate } from './expression.ts';
import { findDocuments, readDocument } from './library.ts';
import { createNoteTool } from './notes.ts';
import { publish } from './shelf.ts';
import { describeTime } from './time.ts';

/** Tools of the team. */
export async function createTools({ dataDir, clock }: ToolContext): Promise<Tools> {
  return {
    search_library: async (args) => ({ documents: findDocuments(textOf(args, 'words')) }),
    read_document: async (args) => {
      const name = textOf(args, 'document');
      const text = readDocument(name);
      if (text === undefined) throw new ToolFailure(`Document ${name} does not exist.`);
      return { document: name, text };
    },
    publish_brief: async (args, { idempotencyKey, runId }) => {
      const brief = { title: textOf(args, 'title'), text: textOf(args, 'text') };
      const number = publish(dataDir, { ...brief, run_id: runId, idempotency_key: idempotencyKey });
      return { status: 'ok', number, title: brief.title };
    },
    calculator: async (args) => ({ result: evaluate(textOf(args, 'expression')) }),
    note: createNoteTool(dataDir),
    now: async ({ time_zone: zone = 'UTC' }) => describeTime(clock.now(), String(zone)),
  };
}

function textOf(args: JsonObject, name: string): string {
  const value = args[name];
  if (typeof value === 'string') return value;
  throw new ToolFailure(`${name} must be a string.`);
}
