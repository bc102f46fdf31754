import { listOf } from '@writ/kernel';
/** A JSON Schema as data. */
export type Schema = Readonly<Record<string, unknown>>;

/**
 * Returns every schema object that `schema` can apply to the value at the path `steps` below a value that `schema`
 * validates; property patterns are not evaluated. Local references are resolved in `root`. The result identifies the
 * part of a schema that reported an error, even if that part is used at several depths.
 */
export function schemasAt(
  root: Schema,
  schema: unknown,
  steps: readonly string[],
): ReadonlySet<unknown> {
  let here = inPlace(root, [schema]);
  for (const step of steps) {
    here = inPlace(
      root,
      [...here].flatMap((each) => below(each, step)),
    );
  }
  return here;
}

/** Returns `schemas` and every schema that they apply to the same value. */
function inPlace(root: Schema, schemas: readonly unknown[]): Set<Schema> {
  const found = new Set<Schema>();
  const open = [...schemas];
  while (open.length > 0) {
    const schema = open.pop();
    if (!isSchema(schema) || found.has(schema)) continue;
    found.add(schema);
    open.push(resolve(root, schema.$ref), schema.if, schema.then, schema.else);
    open.push(schema.not, schema.propertyNames);
    for (const keyword of ['allOf', 'anyOf', 'oneOf']) open.push(...listOf(schema[keyword]));
    open.push(...valuesOf(schema.dependentSchemas));
  }
  return found;
}

/** Returns the schemas that `schema` can apply to the member or item `step`. */
function below(schema: Schema, step: string): unknown[] {
  const named = isSchema(schema.properties) ? schema.properties[step] : undefined;
  return [
    named,
    ...valuesOf(schema.patternProperties),
    ...(named === undefined ? [schema.additionalProperties] : []),
    schema.unevaluatedProperties,
    listOf(schema.prefixItems)[Number(step)],
    schema.items,
    schema.contains,
    schema.unevaluatedItems,
  ];
}

function resolve(root: Schema, reference: unknown): unknown {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return undefined;
  let found: unknown = root;
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    found = isSchema(found) ? found[key] : undefined;
  }
  return found;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function valuesOf(value: unknown): readonly unknown[] {
  return isSchema(value) ? Object.values(value) : [];
}
