import type { ObjectSchema } from '@marcbachmann/cel-js';
import { argumentTypes } from '../cel/argument-types.ts';
import { readExpression } from '../cel/expression.ts';
import { countScope, type Declarations, receiptScope } from '../cel/scope.ts';
import type { Fact, FactUpdate, FactValue, ToolSchemas } from '../types.ts';
import type { DocumentReader, Spot } from './document-reader.ts';
import { NAME } from './names.ts';
import { CAP_UPDATE, FACT, GATE_UPDATE, keysOf } from './policy-schema.ts';
import { readTool } from './read-match.ts';

/** A fact whose updates have not been read yet. */
interface FactHead extends Omit<Fact, 'updates'> {
  readonly updates: Spot | undefined;
}

const TYPES = { cap: ['int', 'cents'], gate: ['bool', 'int', 'string', 'cents'] } as const;
const CEL_TYPES = { bool: 'bool', int: 'int', string: 'string', cents: 'int' } as const;

/** Reads the declarations of facts without their updates, which {@link readFact} reads after the limits are known. */
export function readFactHeads(source: DocumentReader, spot: Spot | undefined): readonly FactHead[] {
  const members = spot && source.map(spot);
  return [...(members ?? [])].flatMap(([name, member]) => readHead(source, name, member) ?? []);
}

/** Returns the facts as CEL types. */
export function factTypes(facts: readonly Pick<Fact, 'name' | 'type'>[]): ObjectSchema {
  return Object.fromEntries(facts.map(({ name, type }) => [name, CEL_TYPES[type]]));
}

/** Reads and checks the updates of a fact. */
export function readFact(
  source: DocumentReader,
  head: FactHead,
  declared: Declarations,
  schemas: ToolSchemas,
): Fact {
  const spots = (head.updates && source.list(head.updates)) ?? [];
  const updates = spots.flatMap(
    (spot) => readUpdate(source, spot, head, { declared, schemas }) ?? [],
  );
  return { ...head, updates };
}

function readHead(source: DocumentReader, name: string, spot: Spot): FactHead | undefined {
  if (!NAME.test(name)) {
    source.report(spot, `${spot.path} must have a name that matches ${NAME.source}.`);
    return undefined;
  }
  const members = source.map(spot, { keys: keysOf(FACT), required: ['kind', 'initial'] });
  const kindSpot = members?.get('kind');
  const kind = kindSpot && source.word(kindSpot, ['cap', 'gate'] as const);
  const initialSpot = members?.get('initial');
  const initial = initialSpot && source.literal(initialSpot);
  if (!kind || initialSpot === undefined || initial === undefined) return undefined;
  const typeSpot = members?.get('type');
  const type = typeSpot ? source.word(typeSpot, TYPES[kind]) : typeOf(initial);
  if (type === undefined) return undefined;
  if (!TYPES[kind].some((allowed) => allowed === type) || !fits(initial, type)) {
    const expected = typeSpot ? `of type ${type}` : 'a whole number';
    source.report(initialSpot, `${initialSpot.path} must be ${expected}.`);
    return undefined;
  }
  return { name, kind, type, initial, updates: members?.get('updates') };
}

function readUpdate(
  source: DocumentReader,
  spot: Spot,
  { kind, type }: FactHead,
  { declared, schemas }: { readonly declared: Declarations; readonly schemas: ToolSchemas },
): FactUpdate | undefined {
  const cap = kind === 'cap';
  const keys: readonly string[] = cap ? keysOf(CAP_UPDATE) : keysOf(GATE_UPDATE);
  const required = cap ? ['tool', 'count'] : ['tool', 'set'];
  const members = source.map(spot, { keys, required });
  const toolSpot = members?.get('tool');
  const tool = toolSpot && readTool(source, toolSpot, schemas);
  if (members === undefined || tool === undefined) return undefined;
  const atApproval = countScope(declared, argumentTypes(schemas, [tool]));
  const atReceipt = receiptScope(declared, kind);
  const count = readExpression(source, members.get('count'), atApproval, ['int']);
  const when = readExpression(source, members.get('when'), atReceipt, ['bool']);
  const valueSpot = members.get(cap ? 'add' : 'set');
  const value = readExpression(source, valueSpot, atReceipt, [CEL_TYPES[type]]);
  const failedSpot = members.get('if_failed');
  const failed = failedSpot && source.word(failedSpot, ['counts', 'ignored']);
  return {
    tool,
    count,
    when,
    value,
    failureCounts: failed !== 'ignored',
    resultFields: [...(when?.resultFields ?? []), ...(value?.resultFields ?? [])],
  };
}

function typeOf(value: FactValue): Fact['type'] {
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'string' ? 'string' : 'int';
}

function fits(value: FactValue, type: Fact['type']): boolean {
  if (type === 'bool') return typeof value === 'boolean';
  if (type === 'string') return typeof value === 'string';
  return Number.isSafeInteger(value);
}
