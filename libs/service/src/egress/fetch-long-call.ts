/** The part of undici's Dispatcher class that `fetch` calls. */
interface Dispatcher {
  dispatch(options: object, handler: object): boolean;
}

/**
 * Time after which a silent connection is closed, in milliseconds: longer than the longest timeout of a model or a
 * tool, which is an hour.
 */
const MAX_SILENCE_MS = 3_660_000;

/**
 * The properties of `globalThis` in which versions of undici, the implementation of `fetch`, keep the global
 * dispatcher. If a version sets both, the dispatcher in the first has the interface of older versions.
 */
const GLOBAL_DISPATCHERS = [1, 2].map((version) =>
  Symbol.for(`undici.globalDispatcher.${version}`),
);

/**
 * `fetch` for calls whose timeouts, of up to an hour, the caller enforces. Without the option `dispatcher`, `fetch`
 * ends a request after 5 minutes without response headers, or without the next part of the body.
 */
export async function fetchLongCall(
  url: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  return await fetch(url, { ...init, dispatcher: patientDispatcher() } as RequestInit);
}

/**
 * Returns a dispatcher that sends requests with the global dispatcher, and thus with its connections and proxies.
 * Returns undefined if a version of Node.js has no such dispatcher: its timeouts of 5 minutes then apply.
 */
function patientDispatcher(): Dispatcher | undefined {
  // The class Response loads undici, which then sets the properties.
  void Response;
  const found = GLOBAL_DISPATCHERS.map((name): unknown => Reflect.get(globalThis, name));
  const usual = found.find((value) => value !== undefined) as Dispatcher | undefined;
  if (usual === undefined) return undefined;
  const timeouts = { headersTimeout: MAX_SILENCE_MS, bodyTimeout: MAX_SILENCE_MS };
  return {
    dispatch: (options, handler) => usual.dispatch({ ...options, ...timeouts }, handler),
  };
}
