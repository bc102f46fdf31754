import type { ArgumentTypes } from '../cel/argument-types.ts';
import { readExpression } from '../cel/expression.ts';
import type { Scope } from '../cel/scope.ts';
import type { Adjustment } from '../types.ts';
import type { Spot } from './document-reader.ts';
import { type DocumentReader, oneOf } from './document-reader.ts';
import { ARGUMENT } from './names.ts';
import { ADJUSTMENT, keysOf } from './policy-schema.ts';

/** Reads `set`: for each argument a new value, a default for an empty value, or limits (SV-3). */
export function readAdjustments(
  source: DocumentReader,
  spot: Spot,
  scope: Scope,
  args: ArgumentTypes | undefined,
): readonly Adjustment[] {
  const members = source.map(spot);
  return [...(members ?? [])].flatMap(([argument, member]) => {
    if (!ARGUMENT.test(argument)) {
      source.report(
        member,
        `${member.path}: the name of an argument must match ${ARGUMENT.source}.`,
      );
      return [];
    }
    if (args !== undefined && !Object.hasOwn(args, argument)) {
      const names = Object.keys(args);
      source.report(
        member,
        `${member.path}: argument ${argument} does not exist; available: ${oneOf(names)}.`,
      );
      return [];
    }
    const type = args?.[argument] ?? 'dyn';
    return readAdjustment(source, member, scope, { argument, type }) ?? [];
  });
}

function readAdjustment(
  source: DocumentReader,
  spot: Spot,
  scope: Scope,
  { argument, type }: { readonly argument: string; readonly type: ArgumentTypes[string] },
): Adjustment | undefined {
  const members = source.map(spot, { keys: keysOf(ADJUSTMENT) });
  if (members === undefined) return undefined;
  const literalSpot = members.get('value') ?? members.get('fill');
  const celSpot = members.get('cel');
  const clamps = members.has('min') || members.has('max');
  const ways = [members.has('value'), members.has('fill'), members.has('cel'), clamps];
  if (ways.filter(Boolean).length !== 1) {
    source.report(spot, `${spot.path} must have value, fill or cel, or else min, max or both.`);
    return undefined;
  }
  if (literalSpot !== undefined) {
    const literal = source.literal(literalSpot);
    if (literal === undefined) return undefined;
    if (type !== 'dyn' && type !== celTypeOf(literal)) {
      source.report(literalSpot, `${literalSpot.path}${wrongLiteral(type)}.`);
    }
    return { argument, how: members.has('value') ? 'value' : 'fill', literal };
  }
  if (celSpot !== undefined) {
    const expression = readExpression(source, celSpot, scope, acceptable(type));
    return expression && { argument, how: 'cel', expression };
  }
  if (type !== 'dyn' && type !== 'double') {
    source.report(spot, `${spot.path}: only a number can have min and max.`);
    return undefined;
  }
  const least = readExpression(source, members.get('min'), scope, ['int', 'double']);
  const most = readExpression(source, members.get('max'), scope, ['int', 'double']);
  return { argument, how: 'clamp', least, most };
}

function celTypeOf(literal: string | number | boolean): string {
  if (typeof literal === 'string') return 'string';
  return typeof literal === 'boolean' ? 'bool' : 'double';
}

function wrongLiteral(type: ArgumentTypes[string]): string {
  const name = typeof type === 'string' ? type : 'map';
  const isScalar = ['double', 'string', 'bool'].includes(name);
  return isScalar ? ` must be a ${name}` : `: only cel can set an argument of type ${name}`;
}

/** An int is also a valid JSON number; an argument of unknown type accepts any type. */
function acceptable(type: ArgumentTypes[string]): readonly string[] {
  if (type === 'double') return ['double', 'int'];
  if (type === 'dyn') return ['double', 'int', 'string', 'bool', 'list', 'map'];
  return typeof type === 'string' ? [type] : ['map'];
}
