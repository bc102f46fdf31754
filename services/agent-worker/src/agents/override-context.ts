import type { AgentContext } from '../runtime/agent.ts';

/** Returns a context with `overrides`; it delegates all other operations to `inner`. */
export function overrideContext(
  inner: AgentContext,
  overrides: Partial<AgentContext>,
): AgentContext {
  return new Proxy(inner, {
    get: (target, name) => {
      if (Object.hasOwn(overrides, name)) return Reflect.get(overrides, name);
      const value: unknown = Reflect.get(target, name, target);
      // Methods of a context use private fields, so they must run on the context itself.
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
