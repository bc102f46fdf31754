import { foldWhiteSpace } from '@writ/kernel';
import { isScalar } from 'yaml';
import type { DocumentReader, Spot } from '../document/document-reader.ts';
import { oneOf } from '../document/document-reader.ts';
import type { Expression } from '../types.ts';
import { runtime } from './cel.ts';
import { accessChains } from './cel-paths.ts';
import { useLinearPatterns } from './linear-patterns.ts';
import { meterPasses } from './meter-passes.ts';
import { withPassLimit } from './pass-limit.ts';
import type { Scope } from './scope.ts';

const RESULT_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/**
 * Parses and type-checks the expression at a spot; `types` are the permitted result types besides `dyn`, where `list`
 * and `map` permit any elements and members. Returns undefined and reports to `source` when the expression is invalid.
 */
export function readExpression(
  source: DocumentReader,
  spot: Spot | undefined,
  scope: Scope,
  types: readonly string[],
): Expression | undefined {
  if (spot === undefined) return undefined;
  const text = expressionText(spot);
  if (text === undefined) {
    source.report(spot, `${spot.path} must be a CEL expression.`);
    return undefined;
  }
  const checked = scope.environment.check(text);
  // Checks the names first, because these messages list the available names, unlike those of the type checker.
  if (checked.error?.name !== 'ParseError' && !namesAreKnown(source, spot, scope, text)) {
    return undefined;
  }
  if (checked.error !== undefined) {
    const { summary, range } = checked.error;
    source.report(spot, `${spot.path}: ${summary}${hint(summary)}.`, range?.start);
    return undefined;
  }
  const type = checked.type ?? 'dyn';
  if (type !== 'dyn' && !types.some((permitted) => isOf(type, permitted))) {
    source.report(spot, `${spot.path} must evaluate to ${oneOf(types)}, not ${type}.`);
    return undefined;
  }
  const program = runtime.parse(text);
  useLinearPatterns(program.ast);
  meterPasses(program.ast);
  const chains = accessChains(program.ast);
  return {
    source: foldWhiteSpace(text),
    line: source.lineOf(spot),
    variables: [...new Set(chains.map((chain) => chain.root))],
    resultFields: chains
      .filter((chain) => chain.root === 'result')
      .map((chain) => chain.names.join('.')),
    evaluate: (context) => withPassLimit(() => program(context)),
  };
}

/** Whether values of a CEL type can be values of the permitted type; an int is also a valid JSON number in a list. */
function isOf(type: string, permitted: string): boolean {
  if (type === permitted || permitted === 'dyn') return true;
  // The type of an object with known fields is `$` and its path; the elements of an empty list have the type `T`.
  if (permitted === 'map') return type.startsWith('map<') || type.startsWith('$');
  const element = elementOf(type);
  if (permitted === 'list' || element === undefined) return element !== undefined;
  const permittedElement = elementOf(permitted);
  if (permittedElement === undefined) return false;
  if (element === 'dyn' || element === 'T') return true;
  return isOf(element, permittedElement) || (element === 'int' && permittedElement === 'double');
}

function elementOf(type: string): string | undefined {
  if (type === 'list') return 'dyn';
  return /^list<(.*)>$/.exec(type)?.[1];
}

/** Numbers and booleans can be unquoted: `count: 1`, `set: true`. */
function expressionText(spot: Spot): string | undefined {
  if (!isScalar(spot.node)) return undefined;
  const { value } = spot.node;
  if (typeof value === 'string') return value.trim() === '' ? undefined : value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return undefined;
}

/** Checks field names: the type checker accepts `has(args.tpyo)`, which would never match. */
function namesAreKnown(source: DocumentReader, spot: Spot, scope: Scope, text: string): boolean {
  let known = true;
  const report = (character: number, message: string) => {
    source.report(spot, `${spot.path}: ${message}`, character);
    known = false;
  };
  for (const chain of accessChains(runtime.parse(text).ast)) {
    const [name] = chain.names;
    const names = scope.names[chain.root];
    if (chain.root === 'result' && !chain.names.every((part) => RESULT_NAME.test(part))) {
      report(chain.start, 'a field of the result must have a plain dotted name.');
    } else if (chain.root === 'result' && name === undefined) {
      report(chain.start, 'name the required fields of the result, such as result.status.');
    } else if (names !== undefined && name !== undefined && !names.includes(name)) {
      report(chain.start, `${chain.root}.${name} does not exist; available: ${oneOf(names)}.`);
    }
  }
  return known;
}

function hint(summary: string): string {
  if (!summary.includes('double') || !summary.includes('int')) return '';
  return ' (numbers in arguments are doubles: write 100.0, or compare cents(...) with an int)';
}
