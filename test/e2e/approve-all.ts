/** A policy that approves everything. */
export const APPROVE_ALL = `
policy: all
rules:
  - { id: all, decide: approve, reason: fine }
`;
