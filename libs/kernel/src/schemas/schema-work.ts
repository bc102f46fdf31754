import { isJsonObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import {
  dependenciesOf,
  isAlias,
  literalsOf,
  mapOf,
  OF_MEMBERS,
  OF_VALUE,
  resolve,
  subschemas,
  UNSUPPORTED,
  unsupportedIn,
  usesUnevaluated,
} from './schema-keywords.ts';
import { compileLinearPattern, SCHEMA_LIMITS, unusable } from './schema-limits.ts';

/** Keys for the members of a value to which a subschema applies: `HERE` is the value itself, `ANY` is every member. */
const HERE = '';
const ANY = '*';

/**
 * How many times a recursive definition refers to itself, by the member of the value to which the reference applies.
 */
type Returns = ReadonlyMap<string, number>;

/** Upper limits of the work to validate one value. */
interface Work {
  readonly checks: number;
  readonly steps: number;
  /** For each definition that is being expanded, how many times it refers to itself. */
  readonly returns: ReadonlyMap<JsonObject, Returns>;
}

/** A function that Ajv compiles. There is one for the schema, and one for each reference. */
interface Compiled {
  /** The subschema to which the reference refers. */
  readonly target: JsonObject;
  /** The subschemas that are compiled into the function. */
  readonly parts: Set<JsonObject>;
}

const NOTHING: Work = { checks: 0, steps: 0, returns: new Map() };

/** The size of a compiled schema. */
interface SchemaSize {
  /** The number of subschemas that are reachable, and therefore compiled, once for each alias. */
  readonly subschemas: number;
  /** The number of nested statements in the largest function. */
  readonly inOneFunction: number;
  /** The number of instructions of all their patterns. */
  readonly patternSteps: number;
  /** The maximum number of statements that record evaluated properties. */
  readonly evaluated: number;
}

/**
 * Rejects a schema that takes more work to compile or to validate against than {@link SCHEMA_LIMITS} allows. The
 * maximum work of validation is measured by rules that follow from JSON Schema 2020-12: branches of a combination apply
 * to the same value, members of `properties` to different values. A recursive definition may apply itself to each
 * member once; more would take time exponential in the depth of the value.
 * @param roots the parts of the schema that are compiled separately
 * @throws InvalidRequestError INVALID_ARGUMENT_CONTRACT when a limit is exceeded, or a keyword or reference cannot be
 *   measured
 */
export function assertSchemaWork(roots: readonly JsonObject[]): void {
  const count = { expanded: 0 };
  const sizes = roots.map((root) => measureSchema(root, count));
  const subschemas = sizes.reduce((sum, size) => sum + size.subschemas, 0);
  if (subschemas > SCHEMA_LIMITS.subschemas) {
    throw unusable(`has ${subschemas} subschemas; the limit is ${SCHEMA_LIMITS.subschemas}`);
  }
  const inOneFunction = Math.max(...sizes.map((size) => size.inOneFunction));
  if (inOneFunction > SCHEMA_LIMITS.inOneFunction) {
    const rule = `has ${inOneFunction} subschemas that are not separated by a $ref`;
    throw unusable(`${rule}; the limit is ${SCHEMA_LIMITS.inOneFunction}`);
  }
  const evaluated = sizes.reduce((sum, size) => sum + size.evaluated, 0);
  if (evaluated > SCHEMA_LIMITS.evaluated) {
    const rule =
      'has too many subschemas and properties for unevaluatedProperties and unevaluatedItems';
    throw unusable(`${rule}: ${evaluated}; the limit is ${SCHEMA_LIMITS.evaluated}`);
  }
  const patternSteps = sizes.reduce((sum, size) => sum + size.patternSteps, 0);
  const { allPatternSteps } = SCHEMA_LIMITS;
  if (patternSteps > allPatternSteps) {
    throw unusable(
      `has patterns with ${patternSteps} instructions; the limit is ${allPatternSteps}`,
    );
  }
}

function measureSchema(root: JsonObject, count: { expanded: number }): SchemaSize {
  // Ajv searches the whole schema for names, and stores some of them for all schemas.
  assertSupported(unsupportedIn(root, 'schema'));
  const expansion = new Expansion(root, count);
  const { checks, steps } = expansion.expand(root, expansion.compiled('#', root));
  const { checksPerValue, patternSteps } = SCHEMA_LIMITS;
  if (checks > checksPerValue) {
    throw unusable(`applies ${checks} subschemas to one value; the limit is ${checksPerValue}`);
  }
  if (steps > patternSteps) {
    throw unusable(
      `has patterns with ${steps} instructions for one value; the limit is ${patternSteps}`,
    );
  }
  // A recursive definition that was expanded inside another one was cut off there, so measure it separately as well.
  for (const [target, compiled] of expansion.recursive) expansion.expand(target, compiled);
  const { subschemas, inOneFunction, properties, allSteps } = expansion;
  const evaluated = usesUnevaluated(root) ? subschemas * properties : 0;
  return { subschemas, inOneFunction, patternSteps: allSteps, evaluated };
}

class Expansion {
  readonly recursive = new Map<JsonObject, Compiled>();
  readonly #root: JsonObject;
  readonly #open = new Set<JsonObject>();
  readonly #steps = new Map<string, number>();
  readonly #literals = new Map<JsonObject, number>();
  readonly #targets = new Map<string, JsonValue | undefined>();
  /** The parts of each compiled function, by its reference. */
  readonly #functions = new Map<string, Set<JsonObject>>();
  readonly #count: { expanded: number };

  constructor(root: JsonObject, count: { expanded: number }) {
    this.#root = root;
    this.#count = count;
  }

  get subschemas(): number {
    return this.#sum((part) => 1 + this.#literalsOf(part));
  }

  get inOneFunction(): number {
    const sizes = [...this.#functions.values()].map((parts) =>
      [...parts].reduce((size, part) => size + 1 + dependenciesOf(part), 0),
    );
    return Math.max(...sizes);
  }

  get properties(): number {
    return this.#sum((part) => Object.keys(mapOf(part.properties)).length);
  }

  get allSteps(): number {
    return [...this.#steps.values()].reduce((sum, steps) => sum + steps, 0);
  }

  compiled(reference: string, target: JsonObject): Compiled {
    const parts = this.#functions.get(reference) ?? new Set();
    this.#functions.set(reference, parts);
    return { target, parts };
  }

  /** @param into the function into which Ajv compiles the schema */
  expand(schema: JsonValue | undefined, into: Compiled): Work {
    // `true`, `false` and a missing schema cost nothing; Ajv rejects everything else.
    if (!isJsonObject(schema)) return NOTHING;
    if (this.#open.has(schema)) {
      this.recursive.set(schema, into);
      return { ...NOTHING, returns: new Map([[schema, new Map([[HERE, 1]])]]) };
    }
    this.#charge(1 + this.#literalsOf(schema) / 20);
    const { enclosing } = SCHEMA_LIMITS;
    if (this.#open.size >= enclosing) {
      throw unusable(`has more than ${enclosing} subschemas that enclose each other`);
    }
    into.parts.add(schema);
    this.#open.add(schema);
    const { returns, ...costs } = combined(this.#parts(schema, into), sum);
    this.#open.delete(schema);
    assertLinear(returns.get(schema));
    const others = new Map([...returns].filter(([target]) => target !== schema));
    // The enclosing subschema copies these entries.
    this.#charge([...others.values()].reduce((entries, { size }) => entries + size, 0) / 4);
    return { ...costs, returns: others };
  }

  #charge(work: number): void {
    this.#count.expanded += work;
    if (this.#count.expanded > SCHEMA_LIMITS.expanded) {
      throw unusable(`expands to more than ${SCHEMA_LIMITS.expanded} subschemas`);
    }
  }

  #parts(schema: JsonObject, into: Compiled): Work[] {
    assertSupported(UNSUPPORTED.find((keyword) => Object.hasOwn(schema, keyword)));
    const patterns = [schema.pattern, ...Object.keys(mapOf(schema.patternProperties))];
    const members = Object.entries(mapOf(schema.properties)).filter(([, part]) =>
      isJsonObject(part),
    );
    return [
      { ...NOTHING, checks: 1 },
      ...patterns.map((pattern) => ({ ...NOTHING, steps: this.#stepsOf(pattern) })),
      this.#target(schema.$ref, isAlias(schema) && into.target === schema ? into : undefined),
      ...subschemas(schema, OF_VALUE).map((part) => this.expand(part, into)),
      ...subschemas(schema, OF_MEMBERS).map((part) => below(ANY, this.expand(part, into))),
      // Each value is validated by only one of them.
      combined(
        members.map(([name, part]) => below(`.${name}`, this.expand(part, into))),
        Math.max,
      ),
    ];
  }

  /** @param alias the function of the schema with the reference, if Ajv compiles the target into that function */
  #target(reference: JsonValue | undefined, alias: Compiled | undefined): Work {
    if (typeof reference !== 'string') return NOTHING;
    const target = this.#resolve(reference);
    if (typeof target === 'boolean') return NOTHING;
    if (isJsonObject(target)) {
      const { parts } = alias ?? this.compiled(reference, target);
      return this.expand(target, { target, parts });
    }
    const rule = 'a reference must be # or a JSON Pointer to a subschema, such as #/$defs/name';
    throw unusable(`refers to ${JSON.stringify(reference)}; ${rule}`);
  }

  #resolve(reference: string): JsonValue | undefined {
    if (!this.#targets.has(reference)) {
      this.#targets.set(reference, resolve(this.#root, reference));
    }
    return this.#targets.get(reference);
  }

  #sum(count: (part: JsonObject) => number): number {
    const parts = [...this.#functions.values()].flatMap((set) => [...set]);
    return parts.reduce((sum, part) => sum + count(part), 0);
  }

  #literalsOf(schema: JsonObject): number {
    const known = this.#literals.get(schema);
    if (known !== undefined) return known;
    const literals = literalsOf(schema);
    this.#literals.set(schema, literals);
    return literals;
  }

  #stepsOf(pattern: JsonValue | undefined): number {
    if (typeof pattern !== 'string') return 0;
    const known = this.#steps.get(pattern);
    if (known !== undefined) return known;
    const steps = stepsOf(pattern);
    this.#steps.set(pattern, steps);
    return steps;
  }
}

/** Returns the work of a subschema that is applied to a member, counted in the enclosing schema. */
function below(member: string, work: Work): Work {
  if (work.returns.size === 0) return work;
  const returns = [...work.returns].map(
    ([target, counts]) => [target, new Map([[member, mostReturns(counts)]])] as const,
  );
  return { ...work, returns: new Map(returns) };
}

function mostReturns(counts: Returns): number {
  const any = counts.get(ANY) ?? 0;
  const named = [...counts].filter(([member]) => member !== ANY).map(([, count]) => count);
  return any + Math.max(0, ...named);
}

function assertLinear(counts: Returns | undefined): void {
  if (counts === undefined) return;
  if (counts.has(HERE)) throw unusable('has a definition that applies itself to the same value');
  if (mostReturns(counts) > 1) {
    throw unusable('has a recursive definition that applies itself to one member more than once');
  }
}

/**
 * Returns the work of several subschemas.
 * @param merge `sum` if they apply to the same value, Math.max if they apply to different members
 */
function combined(works: readonly Work[], merge: (one: number, other: number) => number): Work {
  const returns = new Map<JsonObject, Map<string, number>>();
  let { checks, steps } = NOTHING;
  for (const work of works) {
    checks = merge(checks, work.checks);
    steps = merge(steps, work.steps);
    for (const [target, counts] of work.returns) addReturns(returns, target, counts);
  }
  return { checks, steps, returns };
}

function addReturns(
  all: Map<JsonObject, Map<string, number>>,
  target: JsonObject,
  counts: Returns,
): void {
  const total = all.get(target);
  if (total === undefined) all.set(target, new Map(counts));
  else for (const [member, count] of counts) total.set(member, (total.get(member) ?? 0) + count);
}

function sum(one: number, other: number): number {
  return one + other;
}

function stepsOf(pattern: string): number {
  try {
    return compileLinearPattern(pattern).programSize();
  } catch {
    // The pattern does not compile. The argument that contains it is reported as unknown_spec.
    return 0;
  }
}

function assertSupported(unsupported: string | undefined): void {
  if (unsupported !== undefined) throw unusable(`uses ${unsupported}, which is not supported`);
}
