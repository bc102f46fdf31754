import type { Middleware } from './middleware.ts';

/** Puts middleware around `core`, the first one outermost (AG-9). */
export function compose<C, R>(
  layers: readonly Middleware<C, R>[],
  core: (context: C) => Promise<R>,
): (context: C) => Promise<R> {
  return layers.reduceRight<(context: C) => Promise<R>>(
    (next, layer) => (context) => layer.process(context, next),
    core,
  );
}
