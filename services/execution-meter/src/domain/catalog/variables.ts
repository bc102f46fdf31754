/** Values that catalog entries reference by name. Contains secrets: never logged. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** A text with its references substituted, or the name of the first variable without a value. */
export type Substituted = { readonly text: string } | { readonly missing: string };

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** Substitutes `${NAME}` and `${NAME:-default}`. An empty variable counts as unset. */
export function substitute(text: string, variables: Variables): Substituted {
  let missing: string | undefined;
  const filled = text.replaceAll(REFERENCE, (_, name: string, fallback: string | undefined) => {
    const value = variableOf(variables, name) ?? fallback;
    if (value === undefined) missing ??= name;
    return value ?? '';
  });
  return missing === undefined ? { text: filled } : { missing };
}

/** Returns the value of a variable without surrounding white space; undefined when it is unset or blank. */
export function variableOf(variables: Variables, name: string): string | undefined {
  const value = Object.hasOwn(variables, name) ? variables[name]?.trim() : undefined;
  return value === '' ? undefined : value;
}
