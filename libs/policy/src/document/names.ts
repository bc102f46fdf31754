/** Names of facts and limits: CEL identifiers. */
export const NAME = /^[a-z][a-z0-9_]{0,63}$/;

/** Ids of rules and names of policies. */
export const ID = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** Names and name patterns, in which `*` matches any characters. */
export const PATTERN = /^[A-Za-z0-9_.:/@*-]{1,128}$/;

/** Reasons: machine-readable words with an optional detail after a colon. */
export const REASON =
  /^[a-z][a-z0-9_]{0,63}(:(\{(tool|kind|agent|target)\}|[A-Za-z0-9_.-]{1,64}))?$/;

/** Names of tool arguments. */
export const ARGUMENT = /^(?!__)[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
